import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** What the calls of one UTC day, model, provider and key used together. Amounts are billionths of a US dollar. */
export interface ActivityRow {
  /** As `2026-01-31`. */
  date: string;
  /** Null: no endpoint was asked. */
  model: string | null;
  provider: string | null;
  keyId: string;
  /** Null, and so is the label: a key of the file, or one that was deleted. */
  hash: string | null;
  label: string | null;
  requests: number;
  costNano: number;
  promptTokens: number;
  completionTokens: number;
  reasoningTokens: number;
}

export interface ActivityFilter {
  fromMs: number;
  /** Exclusive. */
  untilMs: number;
  /** Null: all keys. */
  keyId: string | null;
  limit: number;
}

/** Sums over the ledger, newest day first. */
export async function readActivity(database: Queryable, { fromMs, untilMs, keyId, limit }: ActivityFilter): Promise<ActivityRow[]> {
  const parameters = [new Date(fromMs), new Date(untilMs), limit];
  const { rows } = await (keyId === null
    ? database.query<ActivityRow>(SELECT_ALL, parameters)
    : database.query<ActivityRow>(SELECT_OF_KEY, [...parameters, keyId]));
  return rows;
}

// float8: a sum of bigint is numeric, which would arrive as text.
const selectWhere = (more: string) => `
  select sums.*, k.hash, k.label from (
    select (created_at at time zone 'UTC')::date::text as date, model, provider, key_id as "keyId", count(*)::int as requests,
      sum(cost_nano)::float8 as "costNano", sum(prompt_tokens)::float8 as "promptTokens", sum(completion_tokens)::float8 as "completionTokens",
      sum(reasoning_tokens)::float8 as "reasoningTokens"
    from usage_ledger where created_at >= $1::timestamptz and created_at < $2::timestamptz ${more}
    group by 1, 2, 3, 4 order by 1 desc, 2, 3, 4 limit $3::int) sums
  left join router_keys k on k.id = sums."keyId" order by date desc, model, provider, "keyId"`;

// Two, so that each has the plan with its index.
const SELECT_ALL: NamedStatement = { name: 'router-gateway-activity', text: selectWhere('') };
const SELECT_OF_KEY: NamedStatement = { name: 'router-gateway-activity-of-key', text: selectWhere('and key_id = $4::text') };
