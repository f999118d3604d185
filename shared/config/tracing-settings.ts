import { z } from 'zod';
import type { ContentCapture } from '../telemetry/tracing.ts';
import { headerPairs, type OtelConfig, otelConfigOf, otelSettings, ratioOf } from './otel-settings.ts';

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
  ...otelSettings,
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
  /** Of the traces that the sampler decides about. */
  sampleRatio: number;
  content: ContentCapture;
  otel: OtelConfig;
}

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
