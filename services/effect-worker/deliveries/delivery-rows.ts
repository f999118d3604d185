import { z } from 'zod';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** What is posted is fixed when the run settles. */
export interface StoredDelivery {
  runId: string;
  url: string;
  hostAllowlist: readonly string[] | null;
  bundleHash: string;
  body: string;
  traceparent: string | null;
  attempts: number;
  createdAtMs: number;
  state: 'open' | 'delivered' | 'dead';
}

const READ: NamedStatement = {
  name: 'effect_worker_delivery',
  text: 'select run_id, url, host_allowlist, bundle_hash, body, traceparent, attempts, created_at, state from deliveries where id = $1 limit 1',
};
/** The condition holds across all workers that have an item of the delivery. */
const COUNT: NamedStatement = {
  name: 'effect_worker_attempt',
  text: `update deliveries set attempts = attempts + case when counted_by = $3 then 0 else 1 end, counted_by = $3
    where id = $1 and state = 'open' and (attempts < $2 or counted_by = $3) returning attempts`,
};

const row = z.object({
  run_id: z.string(),
  url: z.string(),
  host_allowlist: z.array(z.string()).nullable(),
  bundle_hash: z.string(),
  body: z.string(),
  traceparent: z.string().nullable(),
  attempts: z.number(),
  created_at: z.coerce.date(),
  state: z.enum(['open', 'delivered', 'dead']),
});

export async function readDelivery(database: Queryable, deliveryId: string): Promise<StoredDelivery | null> {
  const { rows } = await database.query(READ, [deliveryId]); // no fail point: reads
  if (rows[0] === undefined) return null;
  const { run_id: runId, host_allowlist: hostAllowlist, bundle_hash: bundleHash, created_at: createdAt, ...rest } = row.parse(rows[0]);
  return { runId, hostAllowlist, bundleHash, createdAtMs: createdAt.getTime(), ...rest };
}

/**
 * @param countedBy the same in each repeat after a transient error, which may have come behind the commit: all of them count one attempt
 * @returns the attempt's number; null when the delivery is settled or has no attempt left
 */
export async function countAttempt(database: Queryable, deliveryId: string, maxAttempts: number, countedBy: string): Promise<number | null> {
  const { rows } = await database.query<{ attempts: number }>(COUNT, [deliveryId, maxAttempts, countedBy]); // no fail point: caller
  return rows[0]?.attempts ?? null;
}
