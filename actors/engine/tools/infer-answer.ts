import { z } from 'zod';

/** What a customer can be asked about a parameter; texts come from the tool's schema. */
export const parameterProblem = z.object({
  parameter: z.string(),
  /** `missing`: no value is known. `invalid`: the value does not fit the schema. */
  problem: z.enum(['missing', 'invalid']),
  description: z.string().nullable(),
  significance: z.string().nullable(),
  examples: z.array(z.unknown()),
  /** Empty: any value of the type. */
  choices: z.array(z.unknown()),
  /** The lower is asked for first. */
  precedence: z.number(),
  /** Never mentioned to the customer. */
  hidden: z.boolean(),
});
export type ParameterProblem = z.infer<typeof parameterProblem>;

const outcome = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('needs_to_run'), toolId: z.string(), listHash: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  z.object({ outcome: z.literal('data_already_in_context'), toolId: z.string(), rationale: z.string().nullable() }),
  z.object({ outcome: z.literal('cannot_run'), toolId: z.string(), problems: z.array(parameterProblem), rationale: z.string().nullable() }),
]);
export type ToolOutcomeOf<Name extends InferredTool['outcome']> = Extract<InferredTool, { outcome: Name }>;
export type InferredTool = z.infer<typeof outcome>;

/** What a call that infers tools found, in the model's order, as it is staged: it outlives releases, so fields are only added. */
export const inferAnswer = z.object({ tools: z.array(outcome) });
export type InferAnswer = z.infer<typeof inferAnswer>;
