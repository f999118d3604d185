import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

const READ: NamedStatement = {
  name: 'effect_worker_session',
  text: `select customer_id, record->'metadata' as metadata from sessions where id = $1`,
};

/** What a search service may need of the session to find what is meant for its customer. */
export async function readSessionFacts(database: Queryable, sessionId: string): Promise<{ customerId: string | null; metadata: Record<string, unknown> }> {
  const { rows } = await database.query<{ customer_id: string | null; metadata: Record<string, unknown> | null }>(READ, [sessionId]);
  return { customerId: rows[0]?.customer_id ?? null, metadata: rows[0]?.metadata ?? {} };
}
