import type { EngineDocuments } from '../engine-documents.ts';
import { type CallRequest, requestOf } from '../turn-calls.ts';
import { currentRows, type TurnRow } from '../turn-row.ts';

/** The next step of a turn's retrieval. */
export type SearchRequest =
  /** A model makes the query. */
  { type: 'rewrite'; call: CallRequest; timeoutMs: number } | { type: 'search'; timeoutMs: number };

/** A model that takes longer is not waited for: the customer's own words are searched for. */
const REWRITE_TIMEOUT_MS = 10_000;

/**
 * What a turn's retrieval does next, from documents and rows alone; null: it is over, or there is none.
 * @param rows of the turn, in order; the first is `began`
 */
export function nextSearch(documents: EngineDocuments, rows: readonly TurnRow[]): SearchRequest | null {
  const { search } = documents;
  if (search === null) return null;
  const { rows: current } = currentRows(rows);
  if (current.some(({ kind }) => kind === 'search')) return null;
  if (search.rewrite === null || current.some(({ kind }) => kind === 'rewrite-query')) return { type: 'search', timeoutMs: search.timeoutMs };
  return { type: 'rewrite', call: requestOf('rewrite-query', 'query', null, documents), timeoutMs: REWRITE_TIMEOUT_MS };
}
