import { z } from 'zod';

/** A worker with more calls sends several messages. */
export const MAX_CALLS_PER_HEARTBEAT = 1_000;

/**
 * On `hb.<origin>` every two seconds: the worker is alive, runs these calls of the origin, and asks which of them have interest. For calls of clients the
 * origin is the gateway that accepted them; calls of actors are asked about at the owner of their session's partition.
 */
export const heartbeat = z.object({
  v: z.literal(1),
  /** The reply goes to `held.<worker>`. */
  workerId: z.string(),
  /** Counts the worker's questions, to match replies to them. */
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
});
export type Heartbeat = z.infer<typeof heartbeat>;

/**
 * On `held.<worker>`: which of the calls in a heartbeat have readers at this origin. The origin that was asked replies even when it has none. Others, such as
 * a gateway where a client has resumed another gateway's call, reply only for calls that they read.
 */
export const interestReply = z.object({
  v: z.literal(1),
  /** The replying origin. */
  from: z.string(),
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
  /** The epoch of the replying partition owner. Absent from gateways and from older releases. */
  epoch: z.number().int().optional(),
});
export type InterestReply = z.infer<typeof interestReply>;
