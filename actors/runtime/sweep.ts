import type { Queryable } from '#shared/storage/database.ts';

/** Rows of one kind per sweep; the next one continues. */
const MAX_SWEPT = 1_000;

/**
 * A claim keeps a tool call from being made twice, so it must outlive every item of its effect. The broker retains items for 24 hours at most
 * (bus/nats); none is begun after its deadline, minutes after the effect was opened; closed effects are not published again. Twice the 24 hours
 * allows for clock differences.
 */
const CLAIMS = `delete from claims where effect_id in (select effect_id from claims where claimed_at < now() - interval '2 days' order by claimed_at limit $1)`;

/**
 * Servers of configurations that are no longer in use. A server's tools are listed again every half minute on demand, so a row in use that is
 * deleted here is recreated. No index: there are only as many rows as servers in a week's configurations.
 */
const SERVERS = `delete from tool_servers where (bundle_hash, server_id) in (
  select bundle_hash, server_id from tool_servers where checked_at < now() - interval '7 days' limit $1)`;

/** Marks lists that no server has any more, and unmarks those that reappeared. Few rows: one per server, and those waiting for deletion. */
const MARK_UNUSED = `update tool_lists set unused_since = case when unused_since is null then now() end where hash in (
  select hash from tool_lists
  where (unused_since is null) <> exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash) limit $1)`;

/**
 * A run keeps the lists that it began with, so a list stays until all runs accepted before it was dropped have settled, which their time limits
 * bound. One more hour for lists whose server's row is about to be written. The deletion checks `unused_since` again in case a worker has stored
 * the list again meanwhile.
 */
const LISTS = `delete from tool_lists where unused_since < now() - interval '1 hour' and hash in (
  select hash from tool_lists where unused_since < now() - interval '1 hour'
    and not exists (select 1 from runs where runs.state in ('accepted', 'running') and runs.created_at < tool_lists.unused_since)
    and not exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash)
  limit $1)`;

/** Deletes rows that workers wrote and that are no longer needed, a limited number at a time. */
export async function sweep(database: Queryable): Promise<void> {
  for (const statement of [CLAIMS, SERVERS, MARK_UNUSED, LISTS]) await database.query(statement, [MAX_SWEPT]);
}
