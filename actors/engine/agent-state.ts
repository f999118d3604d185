import { z } from 'zod';

/** By routine. Not a record of zod's, which drops the id `__proto__`. */
const paths = z.custom<Record<string, (string | null)[]>>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((path) => Array.isArray(path) && path.every((node) => node === null || typeof node === 'string')),
);

/** What the agent remembers of a session from turn to turn, as it is stored: it outlives releases, so fields are only added. */
export const agentState = z.object({
  /** The highest of a session's rows counts; below 0 it is an amendment. */
  seq: z.number().int(),
  /** Policies whose action was taken in an earlier turn, in the order in which they were. */
  appliedPolicyIds: z.array(z.string()),
  /** By routine: the steps that it went through; a null at the end: it was left, a null alone: it was considered and not entered. */
  paths,
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

/**
 * What was found out about a turn after later turns had stored their states (ADR 120): it is added to the newest state, whichever that is.
 *
 * @param offset of the turn's last event, at which it has one amendment
 * @returns a row's own fields
 */
export function amendment(offset: number, appliedPolicyIds: string[]): { seq: number; offset: number; state: AgentState } {
  const seq = -offset - 1;
  return { seq, offset, state: { ...noAgentState, seq, appliedPolicyIds } };
}

/** The newest state with the amendments that are not part of it. */
export function withAmendments(newest: AgentState, amendments: readonly AgentState[]): AgentState {
  const applied = new Set([...newest.appliedPolicyIds, ...amendments.flatMap(({ appliedPolicyIds }) => appliedPolicyIds)]);
  return applied.size === newest.appliedPolicyIds.length ? newest : { ...newest, appliedPolicyIds: [...applied] };
}
