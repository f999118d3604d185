import { conditionIn, conversationalOf, enabledOf, type MatchDocuments } from './candidates.ts';
import { expander } from './expand-reference.ts';
import type { MatchAnswer } from './match-answer.ts';
import type { MatchBatch } from './match-batch.ts';
import type { PolicyClass } from './policy-class.ts';

/** A matching call with its recorded answer. */
export interface StagedMatch {
  /** Of the turn, from 1. */
  pass: number;
  batch: MatchBatch;
  answer: MatchAnswer;
  model: string;
  ms: number;
}

/** One verdict, for the turn's record. */
interface PolicyEvidence {
  id: string;
  applies: boolean;
  rationale: string | null;
  /** `certain`: no call was needed. */
  class: PolicyClass | 'certain';
  /** The pass and the batch; null without a call. */
  batch: string | null;
  model: string | null;
  ms: number | null;
}

/** What the agent has to find out before it can do anything about it: a policy of this turn alone. */
interface Clarification {
  /** `ask:<policy>`. */
  id: string;
  action: string;
  rationale: string | null;
}

export interface Matching {
  /** Policies whose condition holds, with the reason where there is one. Scope and relationships are not considered yet. */
  policies: ReadonlyMap<string, string | null>;
  /** Routines of which a condition holds. */
  activatedRoutineIds: ReadonlySet<string>;
  clarifications: Clarification[];
  /** References to what clarifications stand for: inactive in this turn. */
  withheld: ReadonlySet<string>;
  evidence: PolicyEvidence[];
}

/**
 * What the turn's matching passes found, whatever the order of their results. A policy that applied in one pass does so for the whole turn.
 * @param certain policies that apply without a call
 */
export function matchedPolicies(documents: MatchDocuments, certain: readonly string[], staged: readonly StagedMatch[]): Matching {
  const calls = staged.toSorted((left, right) => left.pass - right.pass || compare(left.batch.id, right.batch.id));
  const evidence: PolicyEvidence[] = certain.map((id) => ({ id, applies: true, rationale: null, class: 'certain', batch: null, model: null, ms: null }));
  for (const { pass, batch, answer, model, ms } of calls) {
    for (const { id, applies, rationale } of answer.verdicts) {
      evidence.push({ id, applies, rationale, class: batch.class, batch: `${pass}/${batch.id}`, model, ms });
    }
  }
  const { clarifications, withheld } = ambiguities(documents, calls);
  const reasons = new Map<string, string | null>();
  for (const { id, applies, rationale } of evidence) if (applies && !reasons.has(id)) reasons.set(id, rationale);
  const isWithheld = (reference: string) => withheld.has(reference);
  const policies = enabledOf(documents).flatMap(({ id }): [string, string | null][] => {
    const reason = reasons.get(id);
    return reason === undefined || isWithheld(`policy:${id}`) ? [] : [[id, reason]];
  });
  const activated = new Set([...reasons.keys()].flatMap((id) => conditionIn(id)?.routineId ?? []));
  return {
    policies: new Map(policies),
    activatedRoutineIds: new Set(conversationalOf(documents).flatMap(({ id }) => (activated.has(id) && !isWithheld(`routine:${id}`) ? [id] : []))),
    clarifications,
    withheld,
    evidence,
  };
}

/** The question replaces the policy that found the ambiguity and everything that the customer may mean. */
function ambiguities(documents: MatchDocuments, calls: readonly StagedMatch[]): { clarifications: Clarification[]; withheld: Set<string> } {
  const expand = expander({ policies: enabledOf(documents), routines: conversationalOf(documents) });
  const sources = new Map(enabledOf(documents).map((policy) => [policy.id, policy]));
  const withheld = new Set<string>();
  const clarifications = new Map<string, Clarification>();
  for (const { answer } of calls) {
    const [verdict] = answer.verdicts;
    const source = verdict === undefined ? undefined : sources.get(verdict.id);
    if (answer.clarification === null || verdict === undefined || source === undefined) continue;
    clarifications.set(source.id, { id: `ask:${source.id}`, action: answer.clarification.action, rationale: verdict.rationale });
    for (const reference of [`policy:${source.id}`, ...source.disambiguates.flatMap(expand)]) withheld.add(reference);
  }
  return { clarifications: [...clarifications.values()], withheld };
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
