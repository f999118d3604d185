import type { UsageMessage } from '../../bus.ts';

/** Begins the id of a message of several records, and of one that is replayed. Any other message is one record, whose id is the message's. */
export const PACKED_ID = 'records-';

/*
 * Several records as one text: the lengths of ids and bodies in UTF-16 units, separated by commas and ended by a newline; then ids and bodies. JSON would have
 * to escape and parse each body.
 */

export function packed(records: readonly UsageMessage[]): string {
  const lengths: number[] = [];
  const parts: string[] = [];
  for (const { messageId, body } of records) {
    lengths.push(messageId.length, body.length);
    parts.push(messageId, body);
  }
  return `${lengths.join(',')}\n${parts.join('')}`;
}

/** Null: the text was not made by `packed`. */
export function unpacked(text: string): UsageMessage[] | null {
  const end = text.indexOf('\n');
  const lengths = text.slice(0, Math.max(0, end)).split(',').map(Number);
  if (lengths.length % 2 !== 0 || !lengths.every((length) => Number.isSafeInteger(length) && length >= 0)) return null;
  const records: UsageMessage[] = [];
  let at = end + 1;
  const take = (length = 0) => {
    at += length;
    return text.slice(at - length, at);
  };
  for (let index = 0; index < lengths.length; index += 2) records.push({ messageId: take(lengths[index]), body: take(lengths[index + 1]) });
  return at === text.length ? records : null;
}
