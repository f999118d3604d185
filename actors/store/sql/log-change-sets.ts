import { instant, type RowSet, rowSet } from './row-set.ts';

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
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      from_off: ['bigint', (row) => row.fromOffset],
      to_off: ['bigint', (row) => row.toOffset],
      deleted_at: ['timestamptz', (row) => instant(row.atMs)],
    },
    (from) => `
  update events set deleted_at = i.deleted_at from ${from}
  where events.session_id = i.session_id and events.off >= i.from_off and events.off < i.to_off and events.deleted_at is null`,
  ),
];
