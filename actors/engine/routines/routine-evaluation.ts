import { z } from 'zod';

/** What a model found out about a node at boot. Stored rows outlive releases: fields are only added. */
export const nodeEvaluation = z.object({
  /** The instruction, reworded to be understood by itself; null: the step has none. */
  internal_action: z.string().nullable(),
  customer_dependent_action_data: z.object({
    /** Whether the step is done only once the customer has answered. */
    is_customer_dependent: z.boolean(),
    customer_action: z.string().nullable(),
    agent_action: z.string().nullable(),
  }),
  /** Whether the step only calls its tools, and says nothing. */
  tool_running_only: z.boolean(),
  /** By condition; the path leads over nodes of the graph and ends at a step or `end`. */
  follow_ups: z.array(z.object({ condition: z.string(), path: z.array(z.string()).min(1) })),
});
export type NodeEvaluation = z.infer<typeof nodeEvaluation>;

/** Of a whole routine, by node id. */
export const routineEvaluation = z.object({ nodes: z.record(z.string(), nodeEvaluation) });
export type RoutineEvaluation = z.infer<typeof routineEvaluation>;
