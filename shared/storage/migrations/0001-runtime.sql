-- The runtime's book: who owns a partition, what the sessions' logs hold, and what is still to be done for them.
-- Bodies are json, never jsonb: jsonb refuses \u0000 and lone surrogates, and one such message would halt a partition.
-- Apart from the seen key nothing that a commit inserts may violate anything: no foreign keys, no other unique keys.

create table meta (key text primary key, value text not null);

create table parts (
  p int primary key,
  epoch bigint not null default 0,
  commit_no bigint not null default 0,
  cursor bigint not null default 0,
  cursor_msg text,
  log_created text,
  owner text,
  machine_v int not null default 0
) with (fillfactor = 70);

-- `head` is the number of events, so the next offset. `record` is the session as the API shows it; `snapshot` is its actor's own.
create table sessions (
  id text primary key,
  p int not null,
  head bigint not null,
  machine_v int not null,
  snapshot json not null,
  record json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 70);

create table events (
  session_id text not null,
  off bigint not null,
  id text not null,
  kind text not null,
  source text not null,
  trace_id text not null,
  body json not null,
  created_at timestamptz not null,
  primary key (session_id, off)
);

create table seen (
  session_id text not null,
  command_id text not null,
  answer json,
  primary key (session_id, command_id)
);

-- What an actor waits for. `inputs` names documents and offsets; the host renders the request from them when it publishes.
create table effects (
  id text not null,
  p int not null,
  session_id text not null,
  turn_id text not null,
  kind text not null,
  state text not null,
  inputs json not null,
  created_at timestamptz not null
);
create index effects_id on effects (id);
-- What a take-over looks for; without it that would read every effect there ever was.
create index effects_open on effects (p) where state = 'open';

create table outbox (p int not null, id text not null, created_at timestamptz not null);
create index outbox_p on outbox (p, id);

create table timers (
  p int not null,
  key text not null,
  due_at timestamptz not null,
  command json not null,
  primary key (p, key)
);

create table dead_letters (
  id text not null,
  p int,
  source text not null,
  reason text not null,
  body text not null,
  created_at timestamptz not null
);

-- Resolved configuration (manifest and documents, no secrets), by content hash. A turn ends on the bundle it began with.
create table bundles (hash text primary key, body json not null, created_at timestamptz not null default now());
