import { instant, type RowSet, rowSet, withoutNul } from './row-set.ts';

/** Customers of runs, and the labels by which sessions are listed. */
export const listingSets: readonly RowSet[] = [
  rowSet(
    'customer_rows',
    (plan) => plan.customers,
    { p: ['int', (row) => row.partition], id: ['text', (row) => row.id], created_at: ['timestamptz', (row) => instant(row.createdAtMs)] },
    (from) => `
  insert into customers (id, name, ephemeral, created_at, updated_at) select i.id, 'Guest', true, i.created_at, i.created_at from ${from}
  on conflict (id) do nothing`,
  ),
  rowSet(
    'label_deletions',
    (plan) => [...plan.labelledSessions.values()],
    {
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      labels: ['text', (row) => JSON.stringify(storedLabels(row.labels))],
    },
    (from) => `
  delete from session_labels using ${from} where session_labels.session_id = i.session_id
    and session_labels.label not in (select json_array_elements_text(i.labels::json))`,
  ),
  rowSet(
    'label_rows',
    (plan) => [...plan.labelledSessions.values()].flatMap(({ labels, ...session }) => storedLabels(labels).map((label) => ({ ...session, label }))),
    {
      p: ['int', (row) => row.partition],
      session_id: ['text', (row) => row.sessionId],
      label: ['text', (row) => row.label],
      customer_id: ['text', (row) => withoutNul(row.customerId)],
      created_at: ['timestamptz', (row) => row.createdAt],
    },
    (from) => `
  insert into session_labels (label, customer_id, created_at, session_id) select i.label, i.customer_id, i.created_at, i.session_id from ${from}
  where not exists (select 1 from session_labels as known where known.session_id = i.session_id and known.label = i.label)`,
  ),
];

/** As text of the database, each once: a label may have NUL and halves of surrogate pairs, which SQL can't read. */
function storedLabels(labels: readonly string[]): string[] {
  return [...new Set(labels.map((label) => Buffer.from(withoutNul(label), 'utf8').toString('utf8')))];
}
