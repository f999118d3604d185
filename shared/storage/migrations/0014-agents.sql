-- Agents whose manifests have `endpoint: true`, registered by their gateways each minute. A row that is not renewed for a day is deleted by a later registration.
create table agents (
  id text primary key,
  name text not null,
  -- The manifest's label.
  version text not null,
  -- Where its gateway is reached.
  url text not null,
  registered_at timestamptz not null default now(),
  renewed_at timestamptz not null default now()
);
