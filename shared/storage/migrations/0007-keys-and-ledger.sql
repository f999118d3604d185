-- Keys made over HTTP. The secret is known by its SHA-256 alone.
create table router_keys (
  -- As in calls, logs and the ledger.
  id text primary key,
  hash text not null unique,
  name text not null,
  -- The masked secret, for people.
  label text not null,
  disabled boolean not null default false,
  management boolean not null default false,
  -- Billionths of a US dollar; null: no limit.
  limit_nano bigint,
  -- daily, weekly or monthly; null: never.
  limit_reset text,
  expires_at timestamptz,
  owner_email text,
  -- As given when the key was made; without an effect.
  include_byok_in_limit boolean not null default false,
  creator_user_id text,
  requests_per_minute bigint,
  tokens_per_minute bigint,
  calls_at_once bigint,
  -- management or oauth.
  made_by text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz
);
create index router_keys_listed on router_keys (created_at desc, id);

-- What a key has spent and reserved, of the file or of a row. Windows are UTC; one that has begun since counts from 0.
create table key_spend (
  key_id text primary key,
  total_nano bigint not null default 0,
  day date not null,
  day_nano bigint not null default 0,
  week date not null,
  week_nano bigint not null default 0,
  month date not null,
  month_nano bigint not null default 0,
  -- The sum of the key's rows in reservations.
  reserved_nano bigint not null default 0
) with (fillfactor = 50);

-- The worst case of a call in flight, of a key with a limit. Settled with the call's usage record.
create table reservations (
  call_id text primary key,
  key_id text not null,
  amount_nano bigint not null,
  -- A call without a usage record by then is dead.
  until timestamptz not null
);
create index reservations_until on reservations (until);

-- One row for each call that has ended, of clients and of actors.
create table usage_ledger (
  generation_id text primary key,
  key_id text not null,
  -- When the call was made.
  created_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  -- Null: no endpoint was asked.
  model text,
  provider text,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  -- A part of completion_tokens.
  reasoning_tokens bigint not null default 0,
  cost_nano bigint not null,
  -- The whole usage record.
  record json not null
);
create index usage_ledger_key on usage_ledger (key_id, created_at);
create index usage_ledger_created on usage_ledger (created_at);
