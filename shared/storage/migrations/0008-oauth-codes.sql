-- Approvals of keys, each exchanged once for a key. The code is known by its SHA-256 alone.
create table oauth_codes (
  hash text primary key,
  -- Null: none was given, and the code alone is exchanged.
  challenge text,
  -- S256 or plain; null without a challenge.
  challenge_method text,
  -- Of the key to be made.
  name text not null,
  limit_nano bigint,
  limit_reset text,
  key_expires_at timestamptz,
  expires_at timestamptz not null
);
create index oauth_codes_expired on oauth_codes (expires_at);
