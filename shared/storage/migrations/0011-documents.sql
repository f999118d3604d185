-- Documents of agents that were published here. A version never changes, so no statement updates a row.
create table documents (
  -- As in addresses: prompts, routines, policies, glossaries, macros, variable-sets.
  kind text not null,
  id text not null,
  version int not null,
  -- Canonical JSON of the document as it was published, without the defaults of its schema.
  body text not null,
  -- SHA-256 of the body, in hex.
  hash text not null,
  published_at timestamptz not null default now(),
  primary key (kind, id, version)
);

-- Documents of other platforms as they were fetched, so that a start does not need the platform.
create table platform_documents (
  -- `platform.base_url` of the manifest, without a slash at its end.
  address text not null,
  kind text not null,
  id text not null,
  version int not null,
  -- JSON as it came.
  body text not null,
  -- Null: it came without one.
  etag text,
  fetched_at timestamptz not null default now(),
  primary key (address, kind, id, version)
);
