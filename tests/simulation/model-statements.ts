/** Statements without a name, as the runtime sends them except for white space: the model identifies them by their text. */
export const RELEASE =
  'with ours as materialized ( select parts.p from parts join unnest($1::int[], $2::bigint[], $3::text[]) as i (p, epoch, owner) on parts.p = i.p and parts.epoch = i.epoch and parts.owner = i.owner order by parts.p for update of parts) update parts set owner = null from ours where parts.p = ours.p';
export const REPEATS =
  'select session_id, command_id, answer from seen join unnest($1::text[], $2::text[]) as i (session_id, command_id) using (session_id, command_id)';
export const OPEN_EFFECTS =
  "select id, p, session_id, turn_id, kind, inputs, created_at, exists (select 1 from outbox where outbox.p = effects.p and outbox.id = effects.id) as unpublished, exists (select 1 from claims where claims.effect_id = effects.id) as claimed from effects where state = 'open' and p = any($1::int[]) order by created_at";
export const ANSWERS = `select message from steps where run_id = $1 and message::text like '{"role":"assistant"%' order by seq desc`;
export const INSERT_DEAD_LETTER =
  'insert into dead_letters (id, p, source, reason, body, created_at) select $1, $2, $3, $4, $5, now() where not exists (select 1 from dead_letters where id = $1 and source = $3)';

export const SWEEP_CLAIMS =
  "delete from claims where effect_id in (select effect_id from claims where claimed_at < now() - interval '2 days' order by claimed_at limit $1)";
export const SWEEP_SERVERS =
  "delete from tool_servers where (bundle_hash, server_id) in ( select bundle_hash, server_id from tool_servers where checked_at < now() - interval '7 days' limit $1)";
export const SWEEP_MARKS =
  'update tool_lists set unused_since = case when unused_since is null then now() end where hash in ( select hash from tool_lists where (unused_since is null) <> exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash) limit $1)';
export const SWEEP_LISTS =
  "delete from tool_lists where unused_since < now() - interval '1 hour' and hash in ( select hash from tool_lists where unused_since < now() - interval '1 hour' and not exists (select 1 from runs where runs.state in ('accepted', 'running') and runs.created_at < tool_lists.unused_since) and not exists (select 1 from tool_servers where tool_servers.list_hash = tool_lists.hash) limit $1)";

/** Statements of the simulation itself, for its gateway and its tool server. */
export const ACCEPTED_COLUMNS = [
  ...['id', 'p', 'session_id', 'customer_id', 'ephemeral', 'routine_id', 'idempotency_key', 'bundle_hash', 'input', 'metadata', 'callback_url'],
  ...['trace_id', 'timeout_ms', 'expires_at', 'created_at'],
] as const;
export const ACCEPT_RUN = `insert into runs (${ACCEPTED_COLUMNS.join(', ')}, state) values (${ACCEPTED_COLUMNS.map((_, index) => `$${index + 1}`).join(', ')}, 'accepted')`;
export const STORE_TOOLS = 'insert into tool_lists (hash, tools, created_at) values ($1, $2, now())';

export const RUN_COLUMNS = [
  ...['id', 'session_id', 'customer_id', 'ephemeral', 'routine_id', 'bundle_hash', 'input', 'metadata', 'callback_url', 'trace_id', 'traceparent'],
  ...['timeout_ms', 'expires_at', 'created_at'],
];
export const DELIVERY_COLUMNS = ['run_id', 'url', 'host_allowlist', 'bundle_hash', 'body', 'traceparent', 'attempts', 'created_at', 'state'];
export const FRESH_PART = { epoch: 0, commit_no: 0, cursor: 0, cursor_msg: null, log_created: null, owner: null, machine_v: 0 };
