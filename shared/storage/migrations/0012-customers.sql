-- Customers are rows of gateways, but for those that a run has for itself: the owner's commits write and delete these.
create table customers (
  id text primary key,
  name text not null,
  -- Of the caller's own records; not unique.
  external_id text,
  tags text[] not null default '{}',
  metadata json not null default '{}',
  -- Whether it was made for one run, with whose session it is deleted.
  ephemeral boolean not null default false,
  -- In milliseconds, as cursors are.
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 80);
create index customers_listed on customers (created_at, id);
create index customers_external on customers (external_id, created_at, id) where external_id is not null;
create index customers_ephemeral on customers (created_at) where ephemeral;

-- The first reply to a write of rows like these that had an idempotency key. Inserted by the transaction of the write, before it.
create table first_replies (
  -- SHA-256 of the operation and the key.
  id text primary key,
  -- Null while the write goes on, so to no other transaction.
  status int,
  -- Null: without a body.
  body json,
  created_at timestamptz not null default now()
);
create index first_replies_age on first_replies (created_at);

-- Of the record, which may have characters that SQL can't read. Null in rows that a release without it wrote, until their next commit or a sweep.
alter table sessions add column customer_id text;
create index sessions_of_customer on sessions (customer_id, created_at, id) where customer_id is not null and deleted_at is null;
