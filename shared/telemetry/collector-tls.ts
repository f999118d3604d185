import { readFileSync } from 'node:fs';
import type { OtelConfig } from '../config/otel-settings.ts';
import { configInvalid } from '../config/problems.ts';

/** PEM texts; an absent one is not set. */
export interface CollectorTls {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

/**
 * The certificates that the environment names for its collector. The library would go on without a file that it cannot read, and then fail
 * at each batch. @throws `config.invalid` for a file that cannot be read, and for a certificate without its key
 */
export function readCollectorTls({ certificate, clientCertificate, clientKey }: OtelConfig['tls']): CollectorTls {
  if ((clientCertificate === null) !== (clientKey === null)) {
    throw configInvalid('the environment', ['OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY must be set together']);
  }
  return {
    ...(certificate === null ? {} : { ca: read('OTEL_EXPORTER_OTLP_CERTIFICATE', certificate) }),
    ...(clientCertificate === null ? {} : { cert: read('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', clientCertificate) }),
    ...(clientKey === null ? {} : { key: read('OTEL_EXPORTER_OTLP_CLIENT_KEY', clientKey) }),
  };
}

function read(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    throw configInvalid('the environment', [`${name}: must be the path of a file that can be read`]);
  }
}
