import type { Queryable } from '../storage/database.ts';

/** A work item that was given up. Deliveries that were given up are stored by their actor host instead. */
interface DeadLetter {
  id: string;
  source: 'tool' | 'call';
  /** Null when it belongs to no session. */
  partition: number | null;
  /** For the operator. */
  reason: string;
  /** The item's body, unchanged. */
  body: string;
}

/** Idempotent: a redelivered item does not add a second row. */
const INSERT_DEAD_LETTER = `insert into dead_letters (id, p, source, reason, body, created_at)
  select $1, $2, $3, $4, $5, now() where not exists (select 1 from dead_letters where id = $1 and source = $3)`;

export async function storeDeadLetter(database: Queryable, { id, source, partition, reason, body }: DeadLetter): Promise<void> {
  await database.query(INSERT_DEAD_LETTER, [id, partition, source, withoutNul(reason), withoutNul(body)]);
}

/** PostgreSQL's text type refuses NUL, and storing a dead letter must never fail for its content. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}
