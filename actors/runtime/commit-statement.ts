import type { NamedStatement } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';
import { type RowSet, rowSets } from './row-sets.ts';

/** Parameters of the fence itself come first: partition, epoch, commit number, cursor, message at the cursor. */
const FENCE_PARAMETERS = 5;

/**
 * Everything that a host has to store, over all its partitions, in one statement (DESIGN 4).
 *
 * `mine` locks the partitions' rows in one order, so that two hosts never wait for each other in a circle, and lets through only those
 * whose epoch and commit number are what this host believes. A partition that another host has taken, or that an earlier try of this
 * very statement has advanced, drops out, and every row joined to it with it. `owned` names the partitions that were committed.
 */
export const commitStatement: NamedStatement = { name: 'commit', text: statementOf(rowSets) };

function statementOf(sets: readonly RowSet[]): string {
  let parameter = FENCE_PARAMETERS;
  const parts = sets.map(({ name, columns, sql }) => {
    const names = columns.map((column) => column.name);
    const values = columns.map(({ type }) => {
      parameter += 1;
      return `$${parameter}::${type}[]`;
    });
    return `${name} as (\n${sql(`unnest(${values.join(', ')}) as i (${names.join(', ')}) join own using (p)`)})`;
  });
  return `
with mine as materialized (
  select parts.p from parts join unnest($1::int[], $2::bigint[], $3::bigint[]) as i (p, epoch, commit_no) using (p)
  where parts.epoch = i.epoch and parts.commit_no = i.commit_no
  order by parts.p for update of parts),
own as (
  update parts set commit_no = parts.commit_no + 1, cursor = i.cursor, cursor_msg = i.cursor_msg
  from mine join unnest($1::int[], $4::bigint[], $5::text[]) as i (p, cursor, cursor_msg) using (p)
  where parts.p = mine.p
  returning parts.p),
${parts.join(',\n')}
select coalesce(array_agg(p), '{}') as owned from own`;
}

/** One array a column, in the statement's order. JSON travels as text and is cast inside. */
export function commitParameters(plan: CommitPlan): unknown[] {
  const partitions = [...plan.partitions.values()];
  return [
    partitions.map(({ claim }) => claim.partition),
    partitions.map(({ claim }) => claim.epoch),
    partitions.map(({ claim }) => claim.commitNo),
    partitions.map(({ cursor }) => cursor),
    partitions.map(({ cursorMark }) => cursorMark),
    ...rowSets.flatMap(({ columns, rowsOf }) => {
      const rows = rowsOf(plan);
      return columns.map(({ value }) => rows.map(value));
    }),
  ];
}
