-- What a client's streamed call that is still running had used a few seconds ago, as the usage record that bills it if no worker ends it. No index on until: the
-- table has the streams of the moment, whose rows are updated every few seconds.
create table interim_records (
  generation_id text primary key,
  record json not null,
  -- Its worker writes the row again before. Afterwards the call is dead, or has ended: then it is in the ledger.
  until timestamptz not null
) with (fillfactor = 50);
