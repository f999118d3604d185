import { z } from 'zod';
import { foundDocument } from '#bus/messages/found-document.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { RowOf } from '../turn-row.ts';

const found = z.object({ documents: z.array(foundDocument) });

/** Of a search that has ended before any source was asked. @param failure `timeout`, or `no_embedding` */
export function failedSearchRow(failure: 'timeout' | 'no_embedding', ms: number): RowOf<'search'> {
  return { kind: 'search', key: 'search', ms, documents: [], failure };
}

/** Of a search's outcome. What went wrong leaves no documents. */
export function searchRowOf(outcome: ToolOutcome, ms: number): RowOf<'search'> {
  const row = { kind: 'search' as const, key: 'search', ms };
  if (outcome.type === 'failed') return { ...row, documents: [], failure: outcome.reason };
  const read = found.safeParse(outcome.data);
  return read.success ? { ...row, documents: read.data.documents, failure: null } : { ...row, documents: [], failure: 'refused' };
}
