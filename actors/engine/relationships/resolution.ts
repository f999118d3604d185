import { z } from 'zod';

/** Why an entity is active or not, as it is staged: it outlives releases, so fields are only added. */
export const resolution = z.object({
  /** `policy:<id>` or `routine:<id>`. */
  entity: z.string(),
  /** `none`: active by itself. */
  outcome: z.enum(['none', 'entailed', 'deprioritized', 'unmet_dependency']),
  /** Null for `none`. */
  relationship: z.enum(['priority', 'numeric_priority', 'dependency', 'scope', 'entailment']).nullable(),
  /** What displaces or entails it; references of what it lacks. */
  counterparts: z.array(z.string()),
});
export type Resolution = z.infer<typeof resolution>;
