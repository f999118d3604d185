import { z } from 'zod';

/** A longer timeout far exceeds a shutdown's wait; more likely the unit is mistaken. */
const MAX_MS = 600_000;
/** Spans in the queue: about a kilobyte each, so 64 MiB at most. */
const MAX_QUEUE_SPANS = 65_536;
/** A limit above it has no effect. */
const MAX_LIMIT = 1_000_000;
/** Characters valid in a header; any other fails every batch. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

const milliseconds = z.coerce.number().int().min(1).max(MAX_MS).optional();
const spans = z.coerce.number().int().min(1).max(MAX_QUEUE_SPANS).optional();
const limit = z.coerce.number().int().min(0).max(MAX_LIMIT).optional();
const path = z.string().optional();

/** Case-insensitive, as OpenTelemetry specifies. */
function oneOf<const Names extends readonly [string, ...string[]]>(names: Names) {
  return z.string().trim().toLowerCase().pipe(z.enum(names)).optional();
}

function listOf(expected: string, isAccepted: (names: readonly string[]) => boolean) {
  return z
    .string()
    .transform(namesIn)
    .refine(isAccepted, { error: `must be ${expected}` })
    .optional();
}

/** Splits a comma-separated list into lower-case names. */
export function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

/** Comma-separated `name=value` pairs, values percent-encoded. @param isSendable refuses values that HTTP can't carry */
function pairs(expected: string, isSendable: (value: string) => boolean, nameOf: (name: string) => string) {
  return z.string().transform((text, context) => {
    const read: Record<string, string> = {};
    for (const pair of text.split(',').filter((one) => one.trim() !== '')) {
      const [, name, value] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=(.*)$/.exec(pair) ?? [];
      const decoded = value === undefined ? null : decode(value.trim());
      if (name === undefined || decoded === null || !isSendable(decoded)) {
        context.addIssue({ code: 'custom', message: `must be comma-separated name=value pairs${expected}` });
        return z.NEVER;
      }
      read[nameOf(name)] = decoded;
    }
    return read;
  });
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

export const headerPairs = pairs(
  ', with values that are allowed in an HTTP header',
  (value) => SENDABLE.test(value),
  (name) => name.toLowerCase(),
);
const attributePairs = pairs(
  ', with percent-encoded values',
  () => true,
  (name) => name,
);

const protocol = oneOf(['http/protobuf', 'http/json', 'grpc']);
const compression = oneOf(['none', 'gzip']);

/**
 * The standard OpenTelemetry variables for traces, besides those in tracing-settings.ts; docs/operations.md describes them. Others are
 * logged at the start (unused-otel-settings.ts).
 */
export const otelSettings = {
  OTEL_SDK_DISABLED: oneOf(['true', 'false']),
  OTEL_LOG_LEVEL: oneOf(['none', 'error', 'warn', 'info', 'debug', 'verbose', 'all']),
  OTEL_PROPAGATORS: listOf('a list that contains tracecontext', (names) => names.includes('tracecontext')),
  OTEL_RESOURCE_ATTRIBUTES: attributePairs.optional(),
  OTEL_TRACES_EXPORTER: listOf('otlp, console, both separated by a comma, or none', areExporters),
  OTEL_TRACES_SAMPLER: oneOf(['always_on', 'always_off', 'traceidratio', 'parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio']),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headerPairs.optional(),
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds,
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: milliseconds,
  OTEL_EXPORTER_OTLP_COMPRESSION: compression,
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compression,
  OTEL_EXPORTER_OTLP_CERTIFICATE: path,
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: path,
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: path,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: path,
  OTEL_EXPORTER_OTLP_CLIENT_KEY: path,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: path,
  OTEL_BSP_SCHEDULE_DELAY: milliseconds,
  OTEL_BSP_EXPORT_TIMEOUT: milliseconds,
  OTEL_BSP_MAX_QUEUE_SIZE: spans,
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: spans,
  OTEL_ATTRIBUTE_COUNT_LIMIT: limit,
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: limit,
  OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: limit,
  OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: limit,
  OTEL_SPAN_LINK_COUNT_LIMIT: limit,
  OTEL_SPAN_EVENT_COUNT_LIMIT: limit,
  OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: limit,
  // No effect: links have no attributes.
  OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: limit,
};

function areExporters(names: readonly string[]): boolean {
  return names.length > 0 && (names.every((name) => name === 'otlp' || name === 'console') || (names.length === 1 && names[0] === 'none'));
}

/** The parsed standard variables; null where one is not set. */
export interface OtelConfig {
  /** Null: `otlp` if there is an endpoint. Empty: nothing is recorded. */
  exporters: readonly string[] | null;
  /** False: the caller's sampling decision is ignored. */
  followsParent: boolean;
  /** Whether callers' `baggage` is passed on. */
  passesBaggage: boolean;
  protocol: 'http/protobuf' | 'http/json' | 'grpc';
  timeoutMs: number | null;
  compression: 'none' | 'gzip';
  /** Paths of PEM files. */
  tls: { certificate: string | null; clientCertificate: string | null; clientKey: string | null };
  batch: { delayMs: number | null; timeoutMs: number | null; queueSpans: number | null; batchSpans: number | null };
  limits: { attributes: number | null; valueChars: number | null; links: number | null; events: number | null; eventAttributes: number | null };
  resource: Readonly<Record<string, string>>;
  /** Level of the OpenTelemetry library's own messages; null: none. */
  diagnostics: 'error' | 'warn' | 'info' | 'debug' | 'verbose' | 'all' | null;
}

const shape = z.object(otelSettings);

export function otelConfigOf(data: z.infer<typeof shape>): OtelConfig {
  const exporters = data.OTEL_TRACES_EXPORTER ?? null;
  const diagnostics = data.OTEL_LOG_LEVEL ?? 'none';
  return {
    exporters: data.OTEL_SDK_DISABLED === 'true' || exporters?.includes('none') === true ? [] : exporters,
    followsParent: data.OTEL_TRACES_SAMPLER?.startsWith('parentbased_') ?? true,
    passesBaggage: data.OTEL_PROPAGATORS?.includes('baggage') ?? false,
    protocol: data.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? data.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf',
    timeoutMs: data.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? data.OTEL_EXPORTER_OTLP_TIMEOUT ?? null,
    compression: data.OTEL_EXPORTER_OTLP_TRACES_COMPRESSION ?? data.OTEL_EXPORTER_OTLP_COMPRESSION ?? 'none',
    tls: {
      certificate: data.OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE ?? data.OTEL_EXPORTER_OTLP_CERTIFICATE ?? null,
      clientCertificate: data.OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE ?? data.OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE ?? null,
      clientKey: data.OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY ?? data.OTEL_EXPORTER_OTLP_CLIENT_KEY ?? null,
    },
    batch: {
      delayMs: data.OTEL_BSP_SCHEDULE_DELAY ?? null,
      timeoutMs: data.OTEL_BSP_EXPORT_TIMEOUT ?? null,
      queueSpans: data.OTEL_BSP_MAX_QUEUE_SIZE ?? null,
      batchSpans: data.OTEL_BSP_MAX_EXPORT_BATCH_SIZE ?? null,
    },
    limits: {
      attributes: data.OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT ?? data.OTEL_ATTRIBUTE_COUNT_LIMIT ?? null,
      valueChars: data.OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT ?? data.OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT ?? null,
      links: data.OTEL_SPAN_LINK_COUNT_LIMIT ?? null,
      events: data.OTEL_SPAN_EVENT_COUNT_LIMIT ?? null,
      eventAttributes: data.OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT ?? data.OTEL_ATTRIBUTE_COUNT_LIMIT ?? null,
    },
    resource: data.OTEL_RESOURCE_ATTRIBUTES ?? {},
    diagnostics: diagnostics === 'none' ? null : diagnostics,
  };
}

/** The fraction of its traces that a sampler records. @param ratio `OTEL_TRACES_SAMPLER_ARG` */
export function ratioOf(sampler: z.infer<typeof shape>['OTEL_TRACES_SAMPLER'], ratio: number): number {
  if (sampler === undefined || sampler.endsWith('traceidratio')) return ratio;
  return sampler.endsWith('always_on') ? 1 : 0;
}
