import type { Candidate } from './candidates.ts';
import type { Evaluations, MatchBatch } from './match-batch.ts';
import { classOf, type PolicyClass, policyClasses } from './policy-class.ts';

/** Policies of low criticality need no rationale, so more of them fit into a call. */
const LOW_BATCH_SIZE = 10;

export interface MatchingFacts {
  /** To judge in this pass. */
  candidates: readonly Candidate[];
  evaluations: Evaluations;
  /** In earlier turns of the session. */
  appliedPolicyIds: ReadonlySet<string>;
  /** `runtime.policy_batch_size`. */
  batchSize: number;
}

export interface MatchingPlan {
  /** Apply without a call: they have no condition. */
  certain: string[];
  /** Made side by side. */
  batches: MatchBatch[];
}

/** The calls of one matching pass: policies of one class, cut into consecutive batches. */
export function planMatching({ candidates, evaluations, appliedPolicyIds, batchSize }: MatchingFacts): MatchingPlan {
  const certain: string[] = [];
  const byClass = new Map<PolicyClass, string[]>(policyClasses.map((name) => [name, []]));
  for (const policy of candidates) {
    const name = classOf(policy, evaluations.get(policy.id) ?? null, appliedPolicyIds.has(policy.id));
    (name === null ? certain : byClass.get(name))?.push(policy.id);
  }
  const batches = [...byClass].flatMap(([name, ids]) =>
    cut(ids, sizeFor(name, batchSize)).map((policyIds, index): MatchBatch => ({ id: `${name}-${index + 1}`, class: name, policyIds })),
  );
  return { certain, batches };
}

function sizeFor(name: PolicyClass, batchSize: number): number {
  if (name === 'disambiguation') return 1;
  return name === 'low-criticality' ? LOW_BATCH_SIZE : batchSize;
}

function cut(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, index) => ids.slice(index * size, (index + 1) * size));
}
