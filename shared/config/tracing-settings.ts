import { z } from 'zod';
import type { ContentCapture } from '../telemetry/tracing.ts';

/** What a header can carry; of anything else every batch would be lost, one after the other. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** `name=value` pairs between commas, values percent-encoded, as OpenTelemetry has them. */
const headerPairs = z.string().transform((text, context) => {
  const headers: Record<string, string> = {};
  for (const pair of text.split(',').filter((one) => one.trim() !== '')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=(.*)$/.exec(pair) ?? [];
    const decoded = value === undefined ? null : decode(value.trim());
    if (name === undefined || decoded === null || !SENDABLE.test(decoded)) {
      context.addIssue({ code: 'custom', message: 'must be name=value pairs between commas, of what a header can carry' });
      return z.NEVER;
    }
    headers[name.toLowerCase()] = decoded;
  }
  return headers;
});

/** The environment variables of tracing, with the names and meanings that OpenTelemetry gives them. */
export const tracingSettings = {
  /** Base address of a collector; `/v1/traces` follows it. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** The whole address, for traces alone. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerPairs.optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  /** The part of traces beginning here that is recorded. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  TRACE_CONTENT: z.enum(['off', 'redacted', 'full']).default('off'),
};

/** Where spans go and what is in them. */
export interface TracingConfig {
  /** Null: the manifest's backend, if it has one. */
  endpoint: string | null;
  tracesEndpoint: string | null;
  /** Sent with every batch, in lower case. They may hold a credential. */
  headers: Record<string, string>;
  /** Null: the process' own. */
  serviceName: string | null;
  sampleRatio: number;
  content: ContentCapture;
}

const shape = z.object(tracingSettings);

export function tracingConfigOf(data: z.infer<typeof shape>): TracingConfig {
  return {
    endpoint: data.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    tracesEndpoint: data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? null,
    headers: data.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: data.OTEL_SERVICE_NAME ?? null,
    sampleRatio: data.OTEL_TRACES_SAMPLER_ARG,
    content: data.TRACE_CONTENT,
  };
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
