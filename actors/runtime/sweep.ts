import type { Queryable } from '#shared/storage/database.ts';

/** Rows of one kind that one round takes away; the next goes on. */
const MAX_SWEPT = 1_000;

/**
 * A claim keeps a tool call from being made twice, so it must outlive every item of its effect. The broker keeps items for 24 hours at
 * most (bus/nats), and none is begun after its deadline, which is minutes after the effect was opened; nobody publishes an effect again
 * that is closed. Twice the 24 hours leaves room for clocks.
 */
const CLAIMS = `delete from claims where effect_id in (select effect_id from claims where claimed_at < now() - interval '2 days' order by claimed_at limit $1)`;

/**
 * Servers of configurations that nobody runs any more. Whoever needs a server's tools asks it again after half a minute, so a row that
 * was taken away from one in use is made anew by the next question. There are as many rows as servers in the configurations of a week, so no index.
 */
const SERVERS = `delete from tool_servers where (bundle_hash, server_id) in (
  select bundle_hash, server_id from tool_servers where checked_at < now() - interval '7 days' limit $1)`;

/** Lists that servers have dropped, and those that came back. There are few: one a server, and those that wait here to be taken away. */
const MARK_UNUSED = `update tool_lists set unused_since = case when unused_since is null then now() end where hash in (
  select hash from tool_lists
  where (unused_since is null) <> exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash) limit $1)`;

/**
 * A run keeps the lists that it began with, so one that was accepted before a list was dropped may have it: it stays until all of those
 * have settled, which their time limits see to. An hour more for lists whose server's row is about to be written. The state of the list
 * itself is looked at once more by the deletion, should a worker have stored it again meanwhile.
 */
const LISTS = `delete from tool_lists where unused_since < now() - interval '1 hour' and hash in (
  select hash from tool_lists where unused_since < now() - interval '1 hour'
    and not exists (select 1 from runs where runs.state in ('accepted', 'running') and runs.created_at < tool_lists.unused_since)
    and not exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash)
  limit $1)`;

/** Takes away rows that workers have written and nothing needs any more, some at a time. */
export async function sweep(database: Queryable): Promise<void> {
  for (const statement of [CLAIMS, SERVERS, MARK_UNUSED, LISTS]) await database.query(statement, [MAX_SWEPT]);
}
