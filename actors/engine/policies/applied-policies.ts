import type { Policy } from '#shared/contracts/documents/policy.ts';
import type { MatchAnswer } from './match-answer.ts';
import type { Evaluations } from './match-batch.ts';
import { isContinuous } from './policy-class.ts';

/**
 * The policies whose action is looked for in the turn's reply: those that may be asked about differently later. Steps of routines and clarifications are
 * no policies.
 * @param applying ids of the turn's policies, after relationships
 * @param applied ids, of earlier turns
 */
export function policiesToTrack(
  policies: readonly Policy[],
  { applying, applied, evaluations }: { applying: ReadonlySet<string>; applied: ReadonlySet<string>; evaluations: Evaluations },
): Policy[] {
  return policies.filter(
    (policy) =>
      policy.track &&
      policy.condition !== null &&
      policy.action !== null &&
      policy.criticality !== 'low' &&
      applying.has(policy.id) &&
      !applied.has(policy.id) &&
      !isContinuous(policy, evaluations.get(policy.id) ?? null),
  );
}

/** The session's applied policies after a turn: the earlier ones first, each once. */
export function appliedAfter(applied: readonly string[], { verdicts }: MatchAnswer): string[] {
  return [...new Set([...applied, ...verdicts.flatMap(({ id, applies }) => (applies ? [id] : []))])];
}
