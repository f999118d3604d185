import type { Queryable } from '../storage/database.ts';

/** A work item that has failed too often. A dead delivery is kept by its owner, with the end of its row. */
interface DeadLetter {
  id: string;
  source: 'tool' | 'call';
  /** Null for what belongs to no session. */
  partition: number | null;
  /** In words for the operator. */
  reason: string;
  /** The item as it was. */
  body: string;
}

/** A second delivery of the item finds the first one's row. */
const INSERT_DEAD_LETTER = `insert into dead_letters (id, p, source, reason, body, created_at)
  select $1, $2, $3, $4, $5, now() where not exists (select 1 from dead_letters where id = $1 and source = $3)`;

/** Keeps a work item that was given up, for people to look at. */
export async function storeDeadLetter(database: Queryable, { id, source, partition, reason, body }: DeadLetter): Promise<void> {
  await database.query(INSERT_DEAD_LETTER, [id, partition, source, withoutNul(reason), withoutNul(body)]);
}

/** No text column takes the character, and a dead letter must never be refused itself. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}
