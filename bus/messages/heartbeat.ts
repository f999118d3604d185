import { z } from 'zod';

/** Calls that one message names; a worker with more sends several. */
export const MAX_CALLS_PER_HEARTBEAT = 1_000;

/**
 * On `hb.<origin>`, every two seconds: a worker lives, runs these calls of the origin, and asks who still holds them. Calls of clients
 * are asked about at the gateway that let them in, those of actors at the owner of their session's partition.
 */
export const heartbeat = z.object({
  v: z.literal(1),
  /** Where the answer goes: `held.<worker>`. */
  workerId: z.string(),
  /** Counts a worker's questions, so that it can tell which of them an answer answers. */
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
});
export type Heartbeat = z.infer<typeof heartbeat>;

/**
 * On `held.<worker>`: which of the calls that a heartbeat named have readers here. Who was asked says so even when it holds none of them;
 * everybody else, as a gateway where a client has resumed a call of another, speaks up only for those that it holds.
 */
export const interestReply = z.object({
  v: z.literal(1),
  /** The origin that answers. */
  from: z.string(),
  question: z.number().int(),
  calls: z.array(z.string()).max(MAX_CALLS_PER_HEARTBEAT),
  /** Under which the owner of a partition answers. Gateways have none, and older releases did not say it. */
  epoch: z.number().int().optional(),
});
export type InterestReply = z.infer<typeof interestReply>;
