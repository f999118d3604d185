-- The session of a dead letter, with which it is deleted. Generated, so that releases before this one store it too. Null: the body names none, as that of a
-- delivery. A body is an agent's where `p` is not null.
-- A model call names its session as its origin, in front of what callers wrote; what may be a field of theirs, as an example in a schema, does not count.
alter table dead_letters add column session_id text generated always as (
  case source
    when 'call' then substring(body from '"callId":"[^"]*","origin":"([A-Za-z0-9_-]{1,128})"')
    else substring(body from '"sessionId":"([A-Za-z0-9_-]{1,128})"')
  end
) stored;
create index dead_letters_session on dead_letters (session_id) where session_id is not null;
