-- What came of each model call, tool call and tool list of a run: the transcript goes with an ephemeral session, and effects say only that
-- they are over. Written with the commit that applies the result, or gives the call up.
-- As in 0001: nothing that a commit inserts may violate anything, so there is no key.
create table run_calls (
  run_id text not null,
  effect_id text not null,
  outcome json not null,
  ended_at timestamptz not null
);
create index run_calls_run on run_calls (run_id);
