import type { EngineDocuments } from '../engine-documents.ts';
import { type CallRequest, requestOf } from '../turn-calls.ts';
import { currentRows, type RowOf, type TurnRow } from '../turn-row.ts';

/** Ids of the policies in force for which the reply is checked (rule 84): those of high criticality that have it do something. */
export function criticalPolicies({ policies }: Pick<EngineDocuments, 'policies'>, inForce: ReadonlySet<string>): string[] {
  return policies.flatMap(({ id, criticality, action }) => (criticality === 'high' && action !== null && inForce.has(id) ? [id] : []));
}

/** The check of the turn's reply. @throws TypeError when the turn has none to make */
export function checkRequest(documents: EngineDocuments, rows: readonly TurnRow[]): CallRequest {
  const policyIds = currentRows(rows).rows.findLast((row) => row.kind === 'resolved')?.critical ?? [];
  if (policyIds.length === 0) throw new TypeError('a reply is checked for no policy');
  return requestOf('check-reply', { key: 'check-reply', reference: { policyIds } }, documents);
}

/** The reply that is being checked, or was; null: the turn has none. */
export function draftIn(rows: readonly TurnRow[]): RowOf<'reply'> | null {
  return currentRows(rows).rows.findLast((row) => row.kind === 'reply') ?? null;
}

/** The policies that the first reply did not follow, with the reasons. */
export function missedIn(rows: readonly TurnRow[]): { id: string; rationale: string | null }[] {
  const check = currentRows(rows).rows.findLast((row) => row.kind === 'check-reply');
  return check?.answer.verdicts.flatMap(({ id, applies, rationale }) => (applies ? [] : [{ id, rationale }])) ?? [];
}
