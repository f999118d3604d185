import type { EngineDocuments } from './engine-documents.ts';
import { firstCandidates } from './policies/candidates.ts';
import { matchedPolicies } from './policies/matched-policies.ts';
import { planMatching } from './policies/plan-matching.ts';
import { type CallRequest, requestOf } from './turn-calls.ts';
import { currentRows, type RowOf, type TurnRow } from './turn-row.ts';

/** What a turn does next. */
export type Decision =
  /** Makes calls side by side, and decides again when all have their row. `status`: the stage that begins, null for none. */
  { type: 'ask'; status: 'matching' | null; calls: readonly CallRequest[] } | { type: 'compose'; resolved: RowOf<'resolved'> };

/**
 * What a turn does next, from its documents and its rows alone: equal rows give equal decisions in any process, in whatever order the rows arrived.
 * @param rows of the turn, in order; the first is `began`
 */
export function decide(documents: EngineDocuments, rows: readonly TurnRow[]): Decision {
  const { began, rows: current } = currentRows(rows);
  const { appliedPolicyIds, paths } = began.state;
  const pass = planMatching({
    candidates: firstCandidates(documents, paths, []),
    evaluations: new Map(),
    appliedPolicyIds: new Set(appliedPolicyIds),
    batchSize: documents.batchSize,
  });
  const matches = new Map(current.flatMap((row) => (row.kind === 'match' ? [[row.key, row] as const] : [])));
  const missing = pass.batches.map((batch) => requestOf('match', `1/${batch.id}`, batch, documents)).filter(({ key }) => !matches.has(key));
  if (missing.length > 0) return { type: 'ask', status: 'matching', calls: missing };
  const staged = [...matches.values()].map(({ reference, answer, model, ms }) => ({ pass: 1, batch: reference, answer, model, ms }));
  const matching = matchedPolicies(documents, pass.certain, staged);
  return {
    type: 'compose',
    resolved: { kind: 'resolved', policies: [...matching.policies].map(([id, rationale]) => ({ id, rationale })), clarifications: matching.clarifications },
  };
}
