import type { Database } from '#shared/storage/database.ts';

export interface Lease {
  /** Of what one host does at a time. */
  key: string;
  owner: string;
  ms: number;
}

/**
 * Takes or renews a lease, so that one host does the work. No advisory lock: it needs an open connection or transaction for the whole work, and idle
 * transactions are ended.
 * @returns whether the owner has it; a paused owner may have lost it without knowing
 */
export async function acquireLease(database: Database, { key, owner, ms }: Lease): Promise<boolean> {
  const { rowCount } = await database.query(
    `insert into meta (key, value) values ($1, json_build_object('sweep', $2::text, 'until', now() + make_interval(secs => $3::float8 / 1000))::text)
     on conflict (key) do update set value = excluded.value
     where meta.value::json->>'sweep' = $2::text or (meta.value::json->>'until')::timestamptz < now()`,
    [key, owner, ms],
  );
  return rowCount > 0;
}

export async function releaseLease(database: Database, { key, owner }: Lease): Promise<void> {
  await database.query(`delete from meta where key = $1 and value::json->>'sweep' = $2::text`, [key, owner]);
}

/** Whether some host has it. */
export async function isLeased(database: Database, key: string): Promise<boolean> {
  const { rowCount } = await database.query(`select from meta where key = $1 and (value::json->>'until')::timestamptz >= now()`, [key]);
  return rowCount > 0;
}
