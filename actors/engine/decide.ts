import type { EngineDocuments } from './engine-documents.ts';
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
  const matching = planMatching({
    candidates: [...documents.policies.values()],
    evaluations: new Map(),
    appliedPolicyIds: new Set(began.state.appliedPolicyIds),
    batchSize: documents.batchSize,
  });
  const answers = new Map(current.flatMap((row) => (row.kind === 'match' ? [[row.key, row] as const] : [])));
  const requests = matching.batches.map((batch) => requestOf('match', `match-${batch.id}`, batch, documents));
  const calls = requests.filter(({ key }) => !answers.has(key));
  if (calls.length > 0) return { type: 'ask', status: 'matching', calls };
  const found = new Map<string, string | null>(matching.certain.map((id) => [id, null]));
  for (const { answer } of answers.values()) for (const { id, applies, rationale } of answer.verdicts) if (applies) found.set(id, rationale);
  const policies = [...documents.policies.keys()].flatMap((id) => (found.has(id) ? [{ id, rationale: found.get(id) ?? null }] : []));
  return { type: 'compose', resolved: { kind: 'resolved', policies } };
}
