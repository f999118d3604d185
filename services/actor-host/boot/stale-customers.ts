import { z } from 'zod';
import { customerId } from '#shared/contracts/agent/customer.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Database } from '#shared/storage/database.ts';

const BATCH_ROWS = 500;
/** Pages per batch; a page holds about ten sessions. */
const BATCH_PAGES = 64;

export interface CustomersBatch {
  /** Rows written or deleted. */
  count: number;
  isLast: boolean;
}

/**
 * Rows for the customers of sessions that have none, as those that a release without customers stored. Its sessions get the column too, by which lists find
 * them; only this derived column is written, never what the owner decides.
 */
export function missingCustomers({ database }: { database: Database }): () => Promise<CustomersBatch> {
  let page = 0;
  return async () => {
    const from = page;
    page += BATCH_PAGES;
    const { rows } = await database.query<{ id: string; record: string; created_at: Date }>(SELECT_WITHOUT, [`(${from},0)`, `(${page},0)`]);
    const found = rows.flatMap(({ id, record, created_at: createdAt }) => {
      const about = face.safeParse(jsonIn(record));
      return about.success ? [{ sessionId: id, createdAt, ...about.data }] : [];
    });
    // First: a sweep that breaks off here finds the sessions again.
    const { rowCount } = await database.query(INSERT, [
      found.map((one) => one.customer_id),
      found.map((one) => one.ephemeral),
      found.map((one) => one.createdAt),
    ]);
    await database.query(UPDATE, [found.map((one) => one.sessionId), found.map((one) => one.customer_id)]);
    const { rows: size } = await database.query<{ pages: number }>(`select (pg_relation_size('sessions') / current_setting('block_size')::int)::int as pages`);
    return { count: rowCount, isLast: page >= (size[0]?.pages ?? 0) };
  };
}

const face = z.object({ customer_id: customerId, ephemeral: z.boolean() });

const SELECT_WITHOUT = `
  select id, record::text as record, created_at from sessions where ctid >= $1::tid and ctid < $2::tid and deleted_at is null
    and not exists (select 1 from customers where customers.id = sessions.customer_id)`;

const INSERT = `
  insert into customers (id, name, ephemeral, created_at, updated_at)
  select distinct on (i.id) i.id, 'Guest', i.ephemeral, i.created_at, i.created_at
  from unnest($1::text[], $2::boolean[], $3::timestamptz[]) as i (id, ephemeral, created_at) order by i.id, i.created_at
  on conflict (id) do nothing`;

const UPDATE = `
  update sessions set customer_id = i.customer_id from unnest($1::text[], $2::text[]) as i (id, customer_id)
  where sessions.id = i.id and sessions.customer_id is null`;

/** Customers of runs whose session is gone: one that a gateway changed at that moment, or a host of a release without customers deleted it. */
export async function orphanedCustomers({ database }: { database: Database }): Promise<CustomersBatch> {
  const { rowCount } = await database.query(DELETE_ORPHANED, [BATCH_ROWS]);
  return { count: rowCount, isLast: rowCount < BATCH_ROWS };
}

const DELETE_ORPHANED = `
  delete from customers where id in (
    select id from customers where ephemeral and created_at < now() - interval '1 minute'
      and not exists (select 1 from sessions where sessions.customer_id = customers.id and sessions.deleted_at is null)
    order by created_at limit $1)`;
