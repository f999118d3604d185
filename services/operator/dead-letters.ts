import type { Queryable } from '#shared/storage/database.ts';

/** Kinds of dead letters: an inapplicable command, an undelivered delivery, an event that its webhook did not take, a tool's item or a model call after its last try, an unusable usage record. */
export const sources = ['command', 'delivery', 'event', 'tool', 'call', 'usage'] as const;
export type Source = (typeof sources)[number];

export interface DeadLetter {
  id: string;
  source: Source;
  partition: number | null;
  reason: string;
  /** The command, item or usage record as stored; of an event its place; empty for a delivery, which has its own row. */
  body: string;
  /** RFC 3339. */
  createdAt: string;
}

/** One to replay. */
export interface FoundLetter extends DeadLetter {
  /** In microseconds: letters of one id and source that are not newer are replayed with it. */
  atMicros: number;
}

interface Row {
  id: string;
  source: Source;
  p: number | null;
  reason: string;
  body: string;
  created_at: Date;
}

/** Newest first; only the newest of one id and source. @param source null: all */
export async function listDeadLetters(database: Queryable, { source, limit }: { source: Source | null; limit: number }): Promise<DeadLetter[]> {
  const { rows } = await database.query<Row>(
    `select * from (
       select distinct on (source, id) id, source, p, reason, body, created_at from dead_letters
       where $1::text is null or source = $1 order by source, id, created_at desc) as newest
     order by created_at desc, id limit $2`,
    [source, limit],
  );
  return rows.map(letterOf);
}

/** The newest dead letter of each source with this id. */
export async function findDeadLetters(database: Queryable, id: string): Promise<FoundLetter[]> {
  const { rows } = await database.query<Row & { at_micros: number }>(
    `select distinct on (source) id, source, p, reason, body, created_at, ${MICROS} as at_micros from dead_letters
     where id = $1 order by source, created_at desc`,
    [id],
  );
  return rows.map((row) => ({ ...letterOf(row), atMicros: row.at_micros }));
}

/** With older ones. What was stored since it was found stays: its replay has failed already. */
export async function removeDeadLetter(database: Queryable, { id, source, atMicros }: FoundLetter): Promise<void> {
  await database.query(`delete from dead_letters where id = $1 and source = $2 and ${MICROS} <= $3::float8`, [id, source, atMicros]);
}

const MICROS = '(extract(epoch from created_at) * 1000000)::float8';

function letterOf({ id, source, p: partition, reason, body, created_at: createdAt }: Row): DeadLetter {
  return { id, source, partition, reason, body, createdAt: new Date(createdAt).toISOString() };
}
