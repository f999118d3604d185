import type { NamedStatement, Queryable } from '../storage/database.ts';

/** A work item or usage record that was given up. Dead deliveries are stored by their actor host instead. */
interface DeadLetter {
  id: string;
  source: 'tool' | 'call' | 'usage';
  /** Null when it belongs to no session. */
  partition: number | null;
  /** Its content is not stored once its session is deleted. */
  sessionId: string | null;
  reason: string;
  body: string;
}

/** Idempotent for redelivered items. */
const INSERT_DEAD_LETTER: NamedStatement = {
  name: 'store-dead-letter',
  text: `insert into dead_letters (id, p, source, reason, body, created_at)
  select $1, $2, $3, $4, $5, now() where not exists (select 1 from dead_letters where id = $1 and source = $3)
    and not exists (select 1 from sessions where id = $6 and deleted_at is not null)`,
};

/** Stores a dead letter, once per id and source, unless its session is deleted. */
export async function storeDeadLetter(database: Queryable, { id, source, partition, sessionId, reason, body }: DeadLetter): Promise<void> {
  await database.query(INSERT_DEAD_LETTER, [withoutNul(id), partition, source, withoutNul(reason), withoutNul(body), sessionId]);
}

/** PostgreSQL's text refuses NUL, and storing a dead letter must not fail for its content. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}
