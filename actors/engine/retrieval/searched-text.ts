import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { currentRows, type TurnRow } from '../turn-row.ts';
import { searchInput } from './search-input.ts';

/** Models of vectors take some thousand tokens. */
const MAX_CHARS = 8_000;

/** What a turn searches for by its meaning: the query that a model has made, else the customer's newest message. Empty: nothing. */
export function searchedText(rows: readonly TurnRow[], history: readonly ConversationEvent[]): string {
  const made = currentRows(rows).rows.findLast((row) => row.kind === 'query')?.query ?? null;
  return (made ?? searchInput(history, 0).query).slice(0, MAX_CHARS);
}

/** Of that text, in base64; null: there is none. */
export function searchedVector(rows: readonly TurnRow[]): string | null {
  return currentRows(rows).rows.findLast((row) => row.kind === 'embedding')?.vector ?? null;
}
