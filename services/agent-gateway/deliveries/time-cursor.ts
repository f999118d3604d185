import { invalidField } from '../plugins/error-reply.ts';

/** The last row of a page of a list by time, newest first. */
export interface TimePosition {
  /** The column's precision: several rows may have one millisecond. */
  atMicros: number;
  key: string;
}

/** `key`: of the row, without control characters. */
const CURSOR = /^([a-z-]+) (\d{1,17}) ([^\p{Cc}]{1,600})$/u;

/** @param list its name: a cursor is of one list */
function timeCursorOf(list: string, { atMicros, key }: TimePosition): string {
  return Buffer.from(`${list} ${atMicros} ${key}`, 'utf8').toString('base64url');
}

/** @throws `request.invalid` for any text that is no cursor of this list */
export function timePositionOf(list: string, cursor: string | undefined): TimePosition | null {
  if (cursor === undefined) return null;
  const [, name, atMicros, key] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('utf8')) ?? [];
  if (name !== list || atMicros === undefined || key === undefined) throw invalidField('/cursor', 'must be the next_cursor of an earlier page of this list');
  return { atMicros: Number(atMicros), key };
}

/** The parameters of a page: where it begins and how many rows are read, one more than it has. */
export function pageParameters(after: TimePosition | null, limit: number): [atMicros: number | null, key: string | null, limit: number] {
  return [after?.atMicros ?? null, after?.key ?? null, limit + 1];
}

/** @param rows one more than the page has, when there is a next one */
export function timePage<Row extends { at_micros: number; key: string }, Item>(list: string, rows: readonly Row[], limit: number, itemOf: (row: Row) => Item) {
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  const next = last === undefined ? null : timeCursorOf(list, { atMicros: last.at_micros, key: last.key });
  return { items: page.map(itemOf), has_more: next !== null, next_cursor: next };
}

/** SQL of a column's microseconds, as cursors have them. */
export function microsOf(column: string): string {
  return `(extract(epoch from ${column}) * 1000000)::float8`;
}

/**
 * SQL: whether a row is behind a page. The first condition is redundant: it is for the index. The half microsecond is for the precision of the cursor's number.
 * @param at parameter of the position's time @param after parameter of its key
 */
export function behind(column: string, key: string, at: string, after: string): string {
  return `(${at}::float8 is null or
    ${column} <= timestamptz 'epoch' + (${at}::float8 + 0.5) * interval '1 microsecond'
    and (${microsOf(column)} < ${at} or ${microsOf(column)} = ${at} and ${key} > ${after}::text))`;
}
