-- Labels of sessions that are not deleted, for lists. Written by the owners' commits, so without a unique key.
create table session_labels (
  label text not null,
  customer_id text not null,
  -- Of the session, as in its row.
  created_at timestamptz not null,
  session_id text not null
);
create index session_labels_listed on session_labels (label, created_at, session_id);
create index session_labels_of_customer on session_labels (customer_id, label, created_at, session_id);
create index session_labels_session on session_labels (session_id);

create index sessions_listed on sessions (created_at, id) where deleted_at is null;

-- Values of the variables of variable sets.
create table variable_values (
  -- A customer's id, tag:<tag>, or DEFAULT.
  key text not null,
  name text not null,
  data json not null,
  updated_at timestamptz not null,
  primary key (key, name)
);
