import { z } from 'zod';
import type { Queryable } from '#shared/storage/database.ts';
import { within } from '#shared/within.ts';

const state = z.enum(['unreachable', 'auth_failed']);
const rowsOfServers = z.array(z.object({ server_id: z.string(), state }));

/** Tool servers that cannot be used, by their ids in the manifest, as the effect worker found them last. */
export type ToolServerTroubles = Record<string, z.infer<typeof state>>;

export interface ToolServerStatesDeps {
  database: Queryable;
  bundleHash: string;
  waits: { readinessMs: number };
}

/** Null: there are none, or they can't be read in time, which is no reason to answer a probe late. */
export async function toolServerTroubles({ database, bundleHash, waits }: ToolServerStatesDeps): Promise<ToolServerTroubles | null> {
  const read = database
    .query<{ server_id: string; state: string }>(SELECT, [bundleHash])
    .then(({ rows }) => rowsOfServers.parse(rows))
    .catch(() => []);
  const rows = await within(waits.readinessMs, read, () => []);
  return rows.length === 0 ? null : Object.fromEntries(rows.map((row) => [row.server_id, row.state]));
}

const SELECT = {
  name: 'agent-gateway-tool-servers',
  text: `select server_id, state from tool_servers where bundle_hash = $1 and state in ('unreachable', 'auth_failed') order by server_id`,
};
