import { z } from 'zod';
import { conditionIn, conversationalOf, enabledOf, type MatchDocuments } from './candidates.ts';
import { expander } from './expand-reference.ts';
import { policyClasses } from './policy-class.ts';
import type { PolicyEvaluation } from './policy-evaluation.ts';

/** One matching call by reference, as effects store it: the order of the ids gives the ordinals of the prompt. */
export const matchBatch = z.object({
  /** Within its pass: `actionable-1`. */
  id: z.string(),
  class: z.enum(policyClasses),
  /** Ids of candidates: of policies, or `routine:<id>:<place>` for a routine's condition. */
  policyIds: z.array(z.string()).min(1),
});
export type MatchBatch = z.infer<typeof matchBatch>;

/** A candidate as the model judges it. */
export interface MatchItem {
  id: string;
  condition: string;
  /** Null for observations. */
  action: string | null;
  /** Of a disambiguation: what the customer may mean. Empty for other classes. */
  options: readonly MatchOption[];
}

export interface MatchOption {
  /** `policy:<id>` or `routine:<id>`. */
  reference: string;
  /** In words: the policy's action or condition, or the routine's title. */
  text: string;
}

/** By policy; those without one keep their own texts. */
export type Evaluations = ReadonlyMap<string, PolicyEvaluation>;

/**
 * A batch's texts, from the documents of its turn's bundle; those of the boot-time evaluation where there are any.
 * @throws TypeError if the documents have no such candidate
 */
export function matchItems({ policyIds }: MatchBatch, documents: MatchDocuments, evaluations: Evaluations): MatchItem[] {
  const policies = new Map(documents.policies.map((policy) => [policy.id, policy]));
  const routines = new Map(documents.routines.map((routine) => [routine.id, routine]));
  const expand = expander({ policies: enabledOf(documents), routines: conversationalOf(documents) });
  const optionOf = (reference: string): MatchOption => {
    const [kind = '', id = ''] = reference.split(':');
    const policy = kind === 'policy' ? policies.get(id) : undefined;
    const routine = kind === 'routine' ? routines.get(id) : undefined;
    return { reference, text: policy?.action ?? policy?.condition ?? ([routine?.title, routine?.description, routine?.conditions[0]].find(Boolean) || id) };
  };
  return policyIds.map((id): MatchItem => {
    const place = conditionIn(id);
    const condition = place === null ? undefined : routines.get(place.routineId)?.conditions[place.index];
    if (condition !== undefined) return { id, condition, action: null, options: [] };
    const policy = policies.get(id);
    if (policy === undefined) throw new TypeError(`the bundle has no candidate ${id}`);
    const evaluation = evaluations.get(id);
    return {
      id,
      condition: evaluation?.agentIntentionCondition ?? policy.condition ?? '',
      action: policy.action === null ? null : (evaluation?.internalAction ?? policy.action),
      options: [...new Set(policy.disambiguates.flatMap(expand))].filter((reference) => reference !== `policy:${id}`).map(optionOf),
    };
  });
}
