import type { OTLPExporterNodeConfigBase } from '@opentelemetry/otlp-exporter-base';
import type { Environment } from '../config/secret-ref.ts';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { type Outbound, openOutbound } from '../http/outbound.ts';
import { readCollectorTls } from './collector-tls.ts';
import type { EncodedSpans } from './encoded-spans.ts';
import type { Log } from './log.ts';
import { logExporter } from './log-exporter.ts';
import type { OpenedExporter } from './opened-exporter.ts';

/** The exporter's own retries included. */
export const EXPORT_TIMEOUT_MS = 10_000;
/** Batches are sent one after another; a retry may overlap. */
const LIMITS = { connectTimeoutMs: 5_000, maxConnections: 4 };
/** Read by the library whatever its options are. */
const READ_BY_LIBRARY = /^OTEL_EXPORTER_OTLP_/;

/** The manifest's tracing backend. */
export interface TracesBackend {
  /** Without the signal's path. */
  url: string;
  /** The full header value; null: none. */
  authorization: string | null;
}

/** The URL that spans are posted to; null: none. With gRPC the endpoint itself, else with the signal's path. */
export function tracesUrlOf(
  { tracesEndpoint, endpoint, otel }: Pick<TracingConfig, 'tracesEndpoint' | 'endpoint' | 'otel'>,
  backend: TracesBackend | null = null,
): string | null {
  if (tracesEndpoint !== null) return tracesEndpoint;
  if (endpoint !== null && otel.protocol === 'grpc') return endpoint;
  const base = endpoint ?? backend?.url ?? null;
  return base === null ? null : `${base.replace(/\/+$/, '')}/v1/traces`;
}

/**
 * Opens the span exporters: to the environment's collector, else to the manifest's backend, and to the log when `OTEL_TRACES_EXPORTER` names
 * `console`. Imports the libraries only when used.
 * @returns none without a destination
 * @throws `config.invalid`
 */
export async function openExporters(config: TracingConfig, backend: TracesBackend | null, environment: Environment, log: Log): Promise<OpenedExporter[]> {
  const { exporters } = config.otel;
  const url = exporters === null || exporters.includes('otlp') ? tracesUrlOf(config, backend) : null;
  const opened: OpenedExporter[] = [];
  if (exporters?.includes('console') === true) opened.push({ form: 'readable', exporter: logExporter(log) });
  if (url !== null) {
    const outbound = openOutbound(environment);
    const isFromEnvironment = config.tracesEndpoint !== null || config.endpoint !== null;
    opened.push(isFromEnvironment ? await exporterToCollector(config, url, outbound) : await exporterToBackend(url, backend?.authorization ?? null, outbound));
  }
  if (opened.length > 0) await writeDiagnostics(config.otel.diagnostics, log);
  return opened;
}

async function exporterToCollector({ otel, headers }: TracingConfig, url: string, outbound: Outbound): Promise<OpenedExporter> {
  const timeoutMillis = otel.timeoutMs ?? EXPORT_TIMEOUT_MS;
  const tls = readCollectorTls(otel.tls);
  const { CompressionAlgorithm } = await import('@opentelemetry/otlp-exporter-base');
  const compression = otel.compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE;
  if (otel.protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    // Headers and certificates have gRPC types here; the exporter reads the variables by itself, those of proxies included.
    return { form: 'readable', exporter: new OTLPTraceExporter({ url, timeoutMillis, compression }) };
  }
  const options = { url, headers, timeoutMillis, compression, httpAgentOptions: () => outbound.openAgent(url, { ...LIMITS, tls }) };
  if (otel.protocol === 'http/protobuf') return exporterOfProtobuf(options);
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  return { form: 'readable', exporter: withoutEnvironment(() => new OTLPTraceExporter(options)) };
}

/** The environment's headers may hold a key of its own collector and must not reach another backend. */
function exporterToBackend(url: string, authorization: string | null, outbound: Outbound): Promise<OpenedExporter> {
  const headers: Record<string, string> = authorization === null ? {} : { authorization };
  return exporterOfProtobuf({ url, headers, timeoutMillis: EXPORT_TIMEOUT_MS, httpAgentOptions: () => outbound.openAgent(url, LIMITS) });
}

/** The library's own exporter in all but its serializer: spans are encoded already. */
async function exporterOfProtobuf(options: OTLPExporterNodeConfigBase): Promise<OpenedExporter> {
  const [{ OTLPExporterBase }, { convertLegacyHttpOptions, createOtlpHttpExportDelegate }, { ProtobufTraceSerializer }] = await Promise.all([
    import('@opentelemetry/otlp-exporter-base'),
    import('@opentelemetry/otlp-exporter-base/node-http'),
    import('@opentelemetry/otlp-transformer'),
  ]);
  const serializer = { serializeRequest: ({ bytes }: EncodedSpans) => bytes, deserializeResponse: ProtobufTraceSerializer.deserializeResponse };
  const metrics = { name: 'span' as const, countItems: ({ count }: EncodedSpans) => count };
  const exporter = withoutEnvironment(() => {
    const converted = convertLegacyHttpOptions(options, 'TRACES', 'v1/traces', { 'Content-Type': 'application/x-protobuf' });
    return new OTLPExporterBase<EncodedSpans>(createOtlpHttpExportDelegate(converted, serializer, 'otlp_http_span_exporter', metrics, undefined));
  });
  return { form: 'encoded', exporter };
}

/** The library merges the environment into its options during construction, with no option against it. */
function withoutEnvironment<Made>(make: () => Made): Made {
  const kept = Object.entries(process.env).filter(([name]) => READ_BY_LIBRARY.test(name));
  for (const [name] of kept) delete process.env[name];
  try {
    return make();
  } finally {
    for (const [name, value] of kept) process.env[name] = value;
  }
}

/** The log masks credentials. */
async function writeDiagnostics(level: TracingConfig['otel']['diagnostics'], log: Log): Promise<void> {
  if (level === null) return;
  const { diag, DiagLogLevel } = await import('@opentelemetry/api');
  const write =
    (to: 'error' | 'warn' | 'info' | 'debug' | 'trace') =>
    (message: string, ...details: unknown[]) => {
      log[to](details.length === 0 ? {} : { details: details.map(String) }, `OpenTelemetry: ${message}`);
    };
  const levels = {
    error: DiagLogLevel.ERROR,
    warn: DiagLogLevel.WARN,
    info: DiagLogLevel.INFO,
    debug: DiagLogLevel.DEBUG,
    verbose: DiagLogLevel.VERBOSE,
    all: DiagLogLevel.ALL,
  };
  const logger = { error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug'), verbose: write('trace') };
  diag.setLogger(logger, { logLevel: levels[level], suppressOverrideMessage: true });
}
