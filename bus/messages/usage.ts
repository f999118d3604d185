import { z } from 'zod';

/** The version that this release reads and writes. */
export const USAGE_RECORD_VERSION = 1;

const count = z.number().int().min(0);

/** One try of a call at an endpoint. */
const attempt = z.object({
  /** Slug of the provider. */
  provider: z.string(),
  providerName: z.string(),
  model: z.string(),
  /** HTTP status of its failure as clients get it; 200: it answered. */
  status: z.number().int(),
  /** Code of the error; null: it answered. */
  code: z.string().nullable(),
  startedAtMs: z.number(),
  /** Until the first content; null: none came. */
  firstTokenMs: z.number().nullable(),
  durationMs: z.number(),
  /** What it cost the operator, in billionths of a US dollar, also where the caller pays nothing; null: the endpoint has no prices. */
  costNano: count.nullable(),
});
export type UsageAttempt = z.infer<typeof attempt>;

/** What one call used, on `usage.record`: exactly one per call that a worker has ended; the message id is the generation id. Without texts of messages. */
export const usageRecord = z.object({
  v: z.literal(USAGE_RECORD_VERSION),
  generationId: z.string(),
  keyId: z.string(),
  /** Whether the call has a reservation, which this record settles. */
  reserved: z.boolean(),
  /** `client`: of a client's request; `actor`: of a turn or run. */
  kind: z.enum(['client', 'actor']),
  /** The API, a row of `shared/surfaces/surfaces.ts`. */
  surface: z.string(),
  createdAtMs: z.number(),
  endedAtMs: z.number(),
  streamed: z.boolean(),
  cancelled: z.boolean(),
  /** Of the endpoint that answered, or that was asked last; null: none was asked. */
  model: z.string().nullable(),
  provider: z.string().nullable(),
  providerName: z.string().nullable(),
  /** The upstream's own id of the answer. */
  upstreamId: z.string().nullable(),
  /** `prompt` includes `cached` and `cacheWrite`, which includes `cacheWrite1h`; `completion` includes `reasoning`. */
  tokens: z.object({ prompt: count, completion: count, cached: count, cacheWrite: count, cacheWrite1h: count.optional(), reasoning: count }),
  /** Whether the tokens were counted here since the upstream reported none. */
  estimated: z.boolean(),
  /** What the caller pays, in billionths of a US dollar. */
  costNano: count,
  attempts: z.array(attempt),
  finishReason: z.string().nullable(),
  nativeFinishReason: z.string().nullable(),
  /** Of the request. */
  sessionId: z.string().nullable(),
  user: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
  serviceTier: z.string().nullable(),
});
export type UsageRecord = z.infer<typeof usageRecord>;
