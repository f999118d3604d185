import type { Queryable } from '../storage/database.ts';
import type { CallerKey } from './caller-key.ts';

interface Row {
  id: string;
  hash: string;
  label: string;
  disabled: boolean;
  management: boolean;
  limit_nano: number | null;
  limit_reset: string | null;
  expires_at: Date | null;
  made_by: string;
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  calls_at_once: number | null;
}

const statement = {
  name: 'router-keys-by-hash',
  text: `select id, hash, label, disabled, management, limit_nano, limit_reset, expires_at, made_by,
    requests_per_minute, tokens_per_minute, calls_at_once from router_keys where hash = any($1)`,
};

/** The rows of `router_keys` with one of the hashes, in any order. */
export async function readKeyRows(database: Queryable, hashes: readonly string[]): Promise<CallerKey[]> {
  const { rows } = await database.query<Row>(statement, [hashes]);
  return rows.map((row) => ({
    id: row.id,
    hash: row.hash,
    label: row.label,
    isManagement: row.management,
    disabled: row.disabled,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    isOauth: row.made_by === 'oauth',
    limitNano: row.limit_nano,
    limitReset: row.limit_reset === 'daily' || row.limit_reset === 'weekly' || row.limit_reset === 'monthly' ? row.limit_reset : null,
    rates: { requestsPerMinute: row.requests_per_minute, tokensPerMinute: row.tokens_per_minute, callsAtOnce: row.calls_at_once },
  }));
}
