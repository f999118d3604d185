import type { Queryable } from '#shared/storage/database.ts';

/** Most rows per kind and sweep. */
const MAX_SWEPT = 1_000;

/**
 * A claim keeps a tool call from being made twice, so it must outlive the effect's items. The broker retains them for 24 hours at most (bus/nats),
 * none is begun after its deadline, minutes after the effect was opened, and closed effects are not published again. Twice the 24 hours allows for
 * clocks.
 */
const CLAIMS = `delete from claims where effect_id in (select effect_id from claims where claimed_at < now() - interval '2 days' order by claimed_at limit $1)`;

/**
 * Of configurations out of use. Tools are listed again every half minute on demand, which recreates a row that is in use. As many rows as servers
 * in a week's configurations, so no index.
 */
const SERVERS = `delete from tool_servers where (bundle_hash, server_id) in (
  select bundle_hash, server_id from tool_servers where checked_at < now() - interval '7 days' limit $1)`;

/** Marks lists that no server has any more, and unmarks those that came back. Few: one per server, and those marked. */
const MARK_UNUSED = `update tool_lists set unused_since = case when unused_since is null then now() end where hash in (
  select hash from tool_lists
  where (unused_since is null) <> exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash) limit $1)`;

/**
 * A run keeps its lists from its start, so a list stays until all runs accepted before it was dropped have settled, which their time limits bound.
 * One hour more for lists that are about to get their server's row. `unused_since` is checked twice: a worker may store the list again meanwhile.
 */
const LISTS = `delete from tool_lists where unused_since < now() - interval '1 hour' and hash in (
  select hash from tool_lists where unused_since < now() - interval '1 hour'
    and not exists (select 1 from runs where runs.state in ('accepted', 'running') and runs.created_at < tool_lists.unused_since)
    and not exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash)
  limit $1)`;

/** Deletes rows of workers that are no longer needed, a limited number at a time. */
export async function sweep(database: Queryable): Promise<void> {
  for (const statement of [CLAIMS, SERVERS, MARK_UNUSED, LISTS]) await database.query(statement, [MAX_SWEPT]);
}
