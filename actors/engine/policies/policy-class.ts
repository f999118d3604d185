import type { Candidate } from './candidates.ts';
import type { PolicyEvaluation } from './policy-evaluation.ts';

/** Each is a question of its own to the model, with a step of its own. */
export const policyClasses = ['observational', 'actionable', 'previously-applied', 'customer-dependent', 'low-criticality', 'disambiguation'] as const;
export type PolicyClass = (typeof policyClasses)[number];

/**
 * The question by which a policy is judged in this turn; null: none, because it has no condition and always applies.
 * @param evaluation null: not evaluated
 * @param isApplied in an earlier turn of the session
 */
export function classOf(policy: Candidate, evaluation: PolicyEvaluation | null, isApplied: boolean): PolicyClass | null {
  if (policy.condition === null) return null;
  if (policy.disambiguates.length > 0) return 'disambiguation';
  if (policy.action === null) return 'observational';
  if (policy.criticality === 'low') return 'low-criticality';
  if (!isApplied || !policy.track || isContinuous(policy, evaluation)) return 'actionable';
  return evaluation?.customerDependent === true ? 'customer-dependent' : 'previously-applied';
}

export function isContinuous({ continuous }: Pick<Candidate, 'continuous'>, evaluation: PolicyEvaluation | null): boolean {
  return continuous ?? evaluation?.continuous ?? false;
}
