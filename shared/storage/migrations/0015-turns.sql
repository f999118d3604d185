-- Results of a turn's model calls, tool calls and searches, and its decisions, in the order in which they were recorded.
create table turn_steps (
  turn_id text not null,
  seq int not null,
  session_id text not null,
  -- Of the session's last event when it was recorded: a deletion of events deletes those from there on.
  off bigint not null,
  body json not null
);
create index turn_steps_turn on turn_steps (turn_id, seq);
create index turn_steps_session on turn_steps (session_id, off);

-- What the agent remembers of a session from turn to turn: applied policies, paths through routines, last preambles. The newest row counts.
create table agent_states (
  session_id text not null,
  seq int not null,
  off bigint not null,
  state json not null
);
create index agent_states_session on agent_states (session_id, seq);
