-- Since when a key is known to be exposed, and the place that was noted last. Null: it is not, or it was enabled again since.
alter table router_keys add column exposed_at timestamptz;
alter table router_keys add column exposed_where text;

-- Mails to send, and for 30 days those that were sent or given up.
create table mails (
  -- Of its Message-ID, too, which is the same at each attempt.
  id text primary key,
  -- key-exposed.
  kind text not null,
  recipient text not null,
  -- The key as it was then: it may be deleted since. Never the secret, nor its hash.
  key_id text not null,
  key_name text not null,
  key_label text not null,
  exposed_at timestamptz not null,
  exposed_where text not null,
  created_at timestamptz not null default now(),
  -- Counted when an attempt begins.
  attempts int not null default 0,
  -- While an attempt is made: the end of its lease.
  next_attempt_at timestamptz not null default now(),
  sent_at timestamptz,
  given_up_at timestamptz,
  -- Of the last attempt, without secrets.
  last_error text,
  -- One mail per exposure and place.
  unique (key_id, exposed_at, exposed_where)
);
create index mails_due on mails (next_attempt_at) where sent_at is null and given_up_at is null;
create index mails_settled on mails ((coalesce(sent_at, given_up_at))) where sent_at is not null or given_up_at is not null;
