-- What a model found out about documents of the agent, by the hash of what it was asked. Rows are not changed, but for a failure that is tried again.
create table evaluations (
  hash text primary key,
  -- A node of a routine, a whole routine, or a policy.
  kind text not null,
  -- Null: the evaluation failed.
  result json,
  evaluated_at timestamptz not null default now(),
  -- Of the last start that needed it; old ones are swept.
  used_at timestamptz not null default now()
);
