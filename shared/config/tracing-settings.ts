import { z } from 'zod';
import type { ContentCapture } from '../telemetry/tracing.ts';
import { headerPairs, type OtelConfig, otelConfigOf, otelSettings, ratioOf } from './otel-settings.ts';

/** The environment variables of tracing, named and defined by OpenTelemetry. */
export const tracingSettings = {
  /** Base address of a collector; `/v1/traces` is appended. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** The full address, for traces only. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerPairs.optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  /** Fraction of the traces begun here that is recorded. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  TRACE_CONTENT: z.enum(['off', 'redacted', 'full']).default('off'),
  ...otelSettings,
};

export interface TracingConfig {
  /** Null: the manifest's backend, if any. */
  endpoint: string | null;
  tracesEndpoint: string | null;
  /** Sent with every batch; names in lower case. May hold a credential. */
  headers: Record<string, string>;
  /** Null: the process's own. */
  serviceName: string | null;
  /** Fraction of the traces that the sampler decides about. */
  sampleRatio: number;
  content: ContentCapture;
  otel: OtelConfig;
}

/** Of processes that can show them. */
export const tracesLocal = z.stringbool();

const shape = z.object(tracingSettings);

export function tracingConfigOf(data: z.infer<typeof shape>): TracingConfig {
  return {
    endpoint: data.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    tracesEndpoint: data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? null,
    headers: { ...data.OTEL_EXPORTER_OTLP_HEADERS, ...data.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    serviceName: data.OTEL_SERVICE_NAME ?? null,
    sampleRatio: ratioOf(data.OTEL_TRACES_SAMPLER, data.OTEL_TRACES_SAMPLER_ARG),
    content: data.TRACE_CONTENT,
    otel: otelConfigOf(data),
  };
}
