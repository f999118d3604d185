import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';

const MAX_RATIONALE_CHARS = 1_000;
const rationale = z.string().transform((text) => cleanText(text.slice(0, MAX_RATIONALE_CHARS)));

/** A question about a routine by reference, as effects store it. With the bundle and the evaluation it gives the same prompt in any process. */
export const routineCall = z.object({
  kind: z.enum(['next-step', 'backtrack', 'select-node']),
  routineId: z.string(),
  /** Of the turn's passes, from 1. */
  pass: z.int().min(1),
  /** The session's, as it stands. */
  path: z.array(z.string().nullable()),
  /** The node that is asked about: the last one of the path, or the first one of the routine. */
  at: z.string(),
  /** Nodes that lead from the path to `at`, itself included; empty when the path ends there. */
  prefix: z.array(z.string()),
  /** Of the evaluation whose texts the question has; null: those of the document. */
  evaluation: z.string().nullable(),
});
export type RoutineCall = z.infer<typeof routineCall>;

/** Of a call within its turn: an answer is for the call with its key. */
export function callKey({ kind, routineId, pass, path }: Pick<RoutineCall, 'kind' | 'routineId' | 'pass' | 'path'>): string {
  // A routine that begins again within a pass has another path, whose length may be the same at its bound.
  return `${kind}:${routineId}:${pass}:${path.length}:${path.at(-1) ?? ''}`;
}

/** What the calls find out, as it is staged: rows outlive releases, so fields are only added. */
export const nextStepAnswer = z.object({
  kind: z.literal('next-step'),
  isCompleted: z.boolean(),
  /** Node ids after the step; empty: it stays. Null: the routine is left. */
  follow: z.array(z.string()).nullable(),
  rationale,
});
export const backtrackAnswer = z.object({
  kind: z.literal('backtrack'),
  requiresBacktracking: z.boolean(),
  /** False: the customer wants the routine again, for something else. */
  isSameProcess: z.boolean(),
  rationale,
});
export const selectNodeAnswer = z.object({
  kind: z.literal('select-node'),
  /** A node of the path. */
  target: z.string(),
  /** Nodes that are done again, in the model's order: not checked. */
  advanced: z.array(z.string()),
  /** Null: the routine is left. */
  next: z.string().nullable(),
  rationale,
});
export const routineAnswer = z.discriminatedUnion('kind', [nextStepAnswer, backtrackAnswer, selectNodeAnswer]);
export type RoutineAnswer = z.infer<typeof routineAnswer>;
export type NextStepAnswer = z.infer<typeof nextStepAnswer>;
export type BacktrackAnswer = z.infer<typeof backtrackAnswer>;
export type SelectNodeAnswer = z.infer<typeof selectNodeAnswer>;
