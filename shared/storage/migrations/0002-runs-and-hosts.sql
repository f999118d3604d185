-- Many hosts share the partitions, and sessions have runs with effects of their own.
-- As in 0001: nothing that a commit inserts may violate anything but the seen key, so only rows that gateways write have other keys.

-- One heartbeat a second and host, by the database's clock. A host that is not seen for five seconds counts as dead.
create table hosts (
  id text primary key,
  machine_v int not null,
  seen_at timestamptz not null
) with (fillfactor = 50);

-- A deleted session leaves its row: later commands are refused by it, late results change nothing.
alter table sessions add column deleted_at timestamptz;

-- A run is accepted by the gateway that writes its row, under the caller's key; from there on only the partition's owner changes it.
create table runs (
  id text primary key,
  p int not null,
  session_id text not null,
  customer_id text not null,
  -- Whether session and customer were made for this run alone, and go when its last delivery is settled.
  ephemeral boolean not null,
  routine_id text not null,
  idempotency_key text not null,
  bundle_hash text not null,
  state text not null,
  input json not null,
  metadata json,
  -- Null: nobody is called back.
  callback_url text,
  trace_id text not null,
  traceparent text,
  timeout_ms bigint not null,
  -- However long it waited for its start, it is settled by then.
  expires_at timestamptz not null,
  output json,
  error json,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  unique (routine_id, idempotency_key)
);
-- What owners look for every few seconds: runs whose start command was lost.
create index runs_unstarted on runs (p, created_at) where state = 'accepted';
create index runs_listed on runs (created_at desc, id);
-- What a deleted session's runs have left is found by it.
create index runs_session on runs (session_id);
-- The oldest of those that may still use something that others have given up.
create index runs_unsettled on runs (created_at) where state in ('accepted', 'running');

-- What a run has said and heard so far, message by message; its model calls name how many of them they see.
create table steps (
  run_id text not null,
  seq int not null,
  session_id text not null,
  message json not null
);
create index steps_run on steps (run_id, seq);

-- A callback: the bytes are fixed by the commit that settles the run. Workers count their attempts here, right before each request.
create table deliveries (
  id text not null,
  p int not null,
  session_id text not null,
  run_id text not null,
  url text not null,
  host_allowlist json not null,
  bundle_hash text not null,
  idempotency_key text not null,
  trace_id text not null,
  traceparent text,
  body text not null,
  attempts int not null default 0,
  -- open, delivered, dead
  state text not null,
  created_at timestamptz not null,
  settled_at timestamptz
);
create index deliveries_id on deliveries (id);
create index deliveries_session on deliveries (session_id);

-- Taken right before a tool call that must not happen twice. A claim without a result: nobody knows whether it did.
create table claims (effect_id text primary key, claimed_at timestamptz not null default now());
create index claims_age on claims (claimed_at);

-- Tools as their servers listed them, by content hash, and which list each server had last.
create table tool_lists (
  hash text primary key,
  tools json not null,
  created_at timestamptz not null default now(),
  -- Since when no server is known to have this list; null as long as one has it.
  unused_since timestamptz
);
create table tool_servers (
  bundle_hash text not null,
  server_id text not null,
  -- Null: never listed.
  list_hash text,
  -- ready, unreachable, auth_failed
  state text not null,
  checked_at timestamptz not null,
  primary key (bundle_hash, server_id)
);

create index sessions_deleted on sessions (deleted_at) where deleted_at is not null;
-- A dead letter is looked for by its name before it is written a second time.
create index dead_letters_id on dead_letters (id);
