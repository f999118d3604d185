import { z } from 'zod';

/** A worker with more calls sends several messages. */
export const MAX_CALLS_PER_HEARTBEAT = 1_000;

/**
 * On `hb.<origin>` every two seconds: a live worker names its calls of the origin and asks which have interest. Clients' calls are asked about at the gateway
 * that accepted them, actors' at the owner of their session's partition.
 */
export const heartbeat = z.object({
  v: z.literal(1),
  /** The reply goes to `held.<worker>`. */
  workerId: z.string(),
  /** Matches replies to questions of a worker. */
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
  /** The attempt of each call, in their order: two workers may have a call (attempt-number.ts). Absent from workers of the release before. */
  attempts: z.array(z.number().int()).max(MAX_CALLS_PER_HEARTBEAT).optional(),
});
export type Heartbeat = z.infer<typeof heartbeat>;

/**
 * On `held.<worker>`: which of a heartbeat's calls have readers here. The asked origin always replies. Others (a gateway where a client resumed another's
 * call) reply only for calls that they read.
 */
export const interestReply = z.object({
  v: z.literal(1),
  /** The replying origin. */
  from: z.string(),
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
  /** Epoch of the replying partition owner; absent from gateways and older releases. */
  epoch: z.number().int().optional(),
});
export type InterestReply = z.infer<typeof interestReply>;
