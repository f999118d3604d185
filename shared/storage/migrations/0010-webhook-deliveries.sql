-- Accepted deliveries to webhooks of the manifest. Those to a routine's own webhook are their run alone.
-- As rows of gateways they may have keys.
create table webhook_deliveries (
  -- wh:<name>:<sha256 of the body>, also the idempotency key of its runs.
  key text primary key,
  webhook text not null,
  -- Ids of the routines that it was for, in the manifest's order: a repeat is not judged again.
  matched text[] not null,
  received_at timestamptz not null
);
-- What the sweep looks for.
create index webhook_deliveries_age on webhook_deliveries (received_at);
