import { z } from 'zod';

/** What the agent remembers of a session from turn to turn, as it is stored: it outlives releases, so fields are only added. */
export const agentState = z.object({
  /** The highest of a session's rows counts. */
  seq: z.number().int(),
  /** Policies whose action was taken in an earlier turn, in the order in which they were. */
  appliedPolicyIds: z.array(z.string()),
  /** By routine: the steps that it went through; a null at the end: it was left, a null alone: it was considered and not entered. */
  paths: z.record(z.string(), z.array(z.string().nullable())),
  /** The newest, newest last. */
  preambles: z.array(z.string()),
  /** So many, up to the number that matters for preambles. The rest is absent for an agent without them. */
  replies: z.number().int().optional(),
  /** How long the customer waited for the reply in the last turns, newest last. */
  waitsMs: z.array(z.number()).optional(),
  /** The agent's newest message is a preamble. */
  endsInPreamble: z.boolean().optional(),
});
export type AgentState = z.infer<typeof agentState>;

/** Of a session before its first turn. */
export const noAgentState: AgentState = { seq: 0, appliedPolicyIds: [], paths: {}, preambles: [] };

/** By what was stored: states never change, and the newest one of a session is read for each of its commands. */
const known = new WeakMap<object, AgentState>();

/** An unreadable one counts as none: the agent forgets, and goes on. */
export function readAgentState(stored: unknown): AgentState {
  if (typeof stored !== 'object' || stored === null) return noAgentState;
  const found = known.get(stored) ?? agentState.safeParse(stored).data ?? noAgentState;
  known.set(stored, found);
  return found;
}
