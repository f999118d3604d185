import type { DeletedEvents } from '../../runtime/apply/commit-rows.ts';
import { type Columns, instant, type RowSet, rowSet } from './row-set.ts';

const cut: Columns<DeletedEvents> = {
  p: ['int', (row) => row.partition],
  session_id: ['text', (row) => row.sessionId],
  from_off: ['bigint', (row) => row.fromOffset],
};

/** Changes of stored events. Their commits append no event that they change or delete: the statement would not see it. */
export const logChangeSets: readonly RowSet[] = [
  rowSet(
    'event_changes',
    (plan) => plan.changedEvents,
    {
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      off: ['bigint', (row) => row.offset],
      body: ['text', (row) => row.text],
    },
    (from) => `
  update events set body = i.body::json from ${from}
  where events.session_id = i.session_id and events.off = i.off and events.deleted_at is null`,
  ),
  rowSet(
    'event_cuts',
    (plan) => plan.deletedEvents,
    {
      ...cut,
      to_off: ['bigint', (row) => row.toOffset],
      deleted_at: ['timestamptz', (row) => instant(row.atMs)],
    },
    (from) => `
  update events set deleted_at = i.deleted_at from ${from}
  where events.session_id = i.session_id and events.off >= i.from_off and events.off < i.to_off and events.deleted_at is null`,
  ),
  // What the agent remembers goes with the events that it comes from.
  rowSet(
    'turn_step_cuts',
    (plan) => plan.deletedEvents,
    cut,
    (from) => `
  delete from turn_steps using ${from} where turn_steps.session_id = i.session_id and turn_steps.off >= i.from_off`,
  ),
  rowSet(
    'agent_state_cuts',
    (plan) => plan.deletedEvents,
    cut,
    (from) => `
  delete from agent_states using ${from} where agent_states.session_id = i.session_id and agent_states.off >= i.from_off`,
  ),
];
