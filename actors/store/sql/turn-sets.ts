import { type RowSet, rowSet } from './row-set.ts';

/** Rows of turns that match policies, follow routines or call tools; other turns have none. */
export const stagedSets: readonly RowSet[] = [
  rowSet(
    'turn_step_rows',
    (plan) => plan.turnSteps,
    {
      p: ['int', (row) => row.partition],
      turn_id: ['text', (row) => row.turnId],
      seq: ['int', (row) => row.seq],
      session_id: ['text', (row) => row.sessionId],
      off: ['bigint', (row) => row.offset],
      body: ['text', (row) => JSON.stringify(row.body)],
    },
    (from) => `
  insert into turn_steps (turn_id, seq, session_id, off, body) select i.turn_id, i.seq, i.session_id, i.off, i.body::json from ${from}`,
  ),
  rowSet(
    'agent_state_rows',
    (plan) => plan.agentStates,
    {
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      seq: ['int', (row) => row.seq],
      off: ['bigint', (row) => row.offset],
      state: ['text', (row) => JSON.stringify(row.state)],
    },
    (from) => `
  insert into agent_states (session_id, seq, off, state) select i.session_id, i.seq, i.off, i.state::json from ${from}`,
  ),
];
