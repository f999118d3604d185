import type { RowOf } from '../../engine/turn-row.ts';

/** Of what is stored. */
const MAX_REASON_CHARS = 300;

/** @param asked what the model was asked for @param reason as the question's reader states it */
export function malformedRow(asked: string, reason: string, call: Pick<RowOf<'malformed'>, 'key' | 'model' | 'ms' | 'tokens'>): RowOf<'malformed'> {
  return { kind: 'malformed', asked, reason: reason.slice(0, MAX_REASON_CHARS), ...call };
}
