import { z } from 'zod';

const attributes = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]));

/** A trace that a process keeps in memory, in short. */
const traceSummary = z.object({
  trace_id: z.string(),
  /** Of its first span without a kept parent. */
  name: z.string(),
  started_at: z.iso.datetime(),
  /** From the first begin to the last end of its kept spans. */
  duration_ms: z.number(),
  /** Kept ones. */
  spans: z.number().int(),
  /** Of the first span that failed; null: none. */
  error_type: z.string().nullable(),
});
export type TraceSummary = z.infer<typeof traceSummary>;

/** Newest last span first. */
export const traceList = z.object({ traces: z.array(traceSummary) });

const traceSpan = z.object({
  span_id: z.string(),
  /** Null: none. A parent may be missing: of a caller, not ended yet, or of another process. */
  parent_span_id: z.string().nullable(),
  name: z.string(),
  kind: z.enum(['internal', 'server', 'client', 'producer']),
  /** As OpenTelemetry has it: `switchyard`, `switchyard.messaging` or `switchyard.gen_ai`. */
  scope: z.string(),
  started_at: z.iso.datetime(),
  duration_ms: z.number(),
  /** A stable code; null: it did not fail. */
  error_type: z.string().nullable(),
  attributes,
  events: z.array(z.object({ name: z.string(), at: z.iso.datetime(), attributes })),
  links: z.array(z.object({ trace_id: z.string(), span_id: z.string() })),
});
export type TraceSpan = z.infer<typeof traceSpan>;

/** One trace, by the begin of its spans. */
export const localTrace = z.object({
  trace_id: z.string(),
  spans: z.array(traceSpan),
  /** Beyond the bounds of one trace. */
  omitted_spans: z.number().int(),
});
export type LocalTrace = z.infer<typeof localTrace>;

export const traceQuery = z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) });
