import { readFileSync } from 'node:fs';
import type { OtelConfig } from '../config/otel-settings.ts';
import { configInvalid } from '../config/problems.ts';

/** Contents of PEM files. */
export interface CollectorTls {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

/**
 * Reads the certificates for the collector, since the library would ignore an unreadable file and fail at each batch.
 * @throws `config.invalid` for an unreadable file, and for a client certificate without its key
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
