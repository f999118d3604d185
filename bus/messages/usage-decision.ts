import { z } from 'zod';

const count = z.number().int().min(0);

/** A candidate, and what put it where it is. What did not matter is absent. */
const ranked = z.object({
  /** `<model id>@<tag>`. */
  endpoint: z.string(),
  health: z.string().optional(),
  /** USD per million tokens in the request's estimated mix. */
  price: z.number().optional(),
  /** In the draw. */
  weight: z.number().optional(),
  /** Whether it served the conversation last. */
  sticky: z.boolean().optional(),
  /** Whether it misses a preferred throughput or latency. */
  slow: z.boolean().optional(),
});

/** Why a call went where it went, as its usage record has it: a shortened decision of the worker (ADR 70). Names of newer releases are read, too. */
export const usageDecision = z.object({
  /** Names of models in the request; empty: it named none. */
  requested: z.array(z.string()),
  strategy: z.string(),
  /** Absent: nothing was sorted. */
  sortedBy: z.string().optional(),
  /** Whether there was a draw, whose seed is the generation id. Absent: no. */
  drawn: z.boolean().optional(),
  /** In the order in which they are tried. */
  candidates: z.array(ranked),
  /** How many more candidates there were. Absent: none. */
  more: count.optional(),
  /** Of each attempt of the record, the place of its endpoint among all candidates, from 0; -1: it is none of them. */
  tried: z.array(z.number().int().min(-1)),
  /** By filter. Absent: none were excluded. */
  excluded: z.array(z.object({ filter: z.string(), endpoints: z.array(z.string()), more: count.optional() })).optional(),
});
export type UsageDecision = z.infer<typeof usageDecision>;
