import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Environment } from '../config/secret-ref.ts';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { type Outbound, openOutbound } from '../http/outbound.ts';
import { readCollectorTls } from './collector-tls.ts';
import type { Log } from './log.ts';
import { logExporter } from './log-exporter.ts';

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
 * Opens the span exporter: to the environment's collector, else to the manifest's backend, and to the log when `OTEL_TRACES_EXPORTER` names
 * `console`. Imports the libraries only when used.
 * @returns null without a destination
 * @throws `config.invalid`
 */
export async function openExporter(config: TracingConfig, backend: TracesBackend | null, environment: Environment, log: Log): Promise<SpanExporter | null> {
  const { exporters } = config.otel;
  const url = exporters === null || exporters.includes('otlp') ? tracesUrlOf(config, backend) : null;
  const opened: SpanExporter[] = [];
  if (exporters?.includes('console') === true) opened.push(logExporter(log));
  if (url !== null) {
    const outbound = openOutbound(environment);
    const isFromEnvironment = config.tracesEndpoint !== null || config.endpoint !== null;
    opened.push(isFromEnvironment ? await exporterToCollector(config, url, outbound) : await exporterToBackend(url, backend?.authorization ?? null, outbound));
  }
  const [first, second] = opened;
  if (first === undefined) return null;
  await writeDiagnostics(config.otel.diagnostics, log);
  return second === undefined ? first : both(first, second);
}

async function exporterToCollector({ otel, headers }: TracingConfig, url: string, outbound: Outbound): Promise<SpanExporter> {
  const timeoutMillis = otel.timeoutMs ?? EXPORT_TIMEOUT_MS;
  const tls = readCollectorTls(otel.tls);
  const { CompressionAlgorithm } = await import('@opentelemetry/otlp-exporter-base');
  const compression = otel.compression === 'gzip' ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE;
  if (otel.protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    // Headers and certificates have gRPC types here; the exporter reads the variables by itself, those of proxies included.
    return new OTLPTraceExporter({ url, timeoutMillis, compression });
  }
  const { OTLPTraceExporter } = await (otel.protocol === 'http/json'
    ? import('@opentelemetry/exporter-trace-otlp-http')
    : import('@opentelemetry/exporter-trace-otlp-proto'));
  const options = { url, headers, timeoutMillis, compression, httpAgentOptions: () => outbound.openAgent(url, { ...LIMITS, tls }) };
  return withoutEnvironment(() => new OTLPTraceExporter(options));
}

/** The environment's headers may hold a key of its own collector and must not reach another backend. */
async function exporterToBackend(url: string, authorization: string | null, outbound: Outbound): Promise<SpanExporter> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  const headers: Record<string, string> = authorization === null ? {} : { authorization };
  return withoutEnvironment(
    () => new OTLPTraceExporter({ url, headers, timeoutMillis: EXPORT_TIMEOUT_MS, httpAgentOptions: () => outbound.openAgent(url, LIMITS) }),
  );
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

/** The second one's result counts: the first is the log and always succeeds. */
function both(first: SpanExporter, second: SpanExporter): SpanExporter {
  return {
    export(spans, done) {
      first.export(spans, () => {});
      second.export(spans, done);
    },
    async shutdown() {
      await Promise.all([first.shutdown(), second.shutdown()]);
    },
  };
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
