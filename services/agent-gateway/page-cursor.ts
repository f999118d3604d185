import { invalidField } from './plugins/error-reply.ts';

/** The last row of a page, in a list by creation. */
export interface PagePosition {
  createdAtMs: number;
  id: string;
}

/** A page with the rows that were asked for and, when there is a next one, one more. @returns `next` is null on the last page */
export function pageOf<Row extends { id: string; created_at: string }>(rows: readonly Row[], limit: number): { items: Row[]; next: PagePosition | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? { createdAtMs: Date.parse(last.created_at), id: last.id } : null };
}

/** @param list its name: a cursor is of one list */
export function cursorOf(list: string, { createdAtMs, id }: PagePosition): string {
  return Buffer.from(`${list} ${createdAtMs} ${id}`, 'utf8').toString('base64url');
}

/** @throws `request.invalid` for any text that is no cursor of this list */
export function positionOf(list: string, cursor: string): PagePosition {
  const [, name, createdAtMs, id] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('utf8')) ?? [];
  if (name !== list || createdAtMs === undefined || id === undefined) throw invalidField('/cursor', 'must be the next_cursor of an earlier page of this list');
  return { createdAtMs: Number(createdAtMs), id };
}

/** No control characters in the id: it becomes a parameter of a statement. */
const CURSOR = /^([a-z]+) (\d{1,13}) ([^\p{Cc}]{1,128})$/u;

/** Where a page begins. Always a position, so that the statement has one plan, which starts there in the index. */
export function startOf(sort: 'asc' | 'desc', after: PagePosition | null): [at: Date | string, id: string] {
  if (after !== null) return [new Date(after.createdAtMs), after.id];
  return [sort === 'desc' ? 'infinity' : '-infinity', ''];
}
