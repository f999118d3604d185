-- What each host knows of the broker, beside its heartbeat and by the same clock. Null: a host of the release before, which does not say.

alter table hosts
  -- Since when the broker has answered this host without a gap, and when it last did.
  add column bus_since timestamptz,
  add column bus_seen_at timestamptz,
  -- Of the command log that answered: two values among living hosts mean two brokers.
  add column log_created text;
