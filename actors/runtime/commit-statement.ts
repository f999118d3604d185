import type { NamedStatement } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';
import { type RowSet, rowSets, turnSets } from './row-sets.ts';

/** Parameters of the fence itself come first: partition, epoch, commit number, cursor, message at the cursor, owner. */
const FENCE_PARAMETERS = 6;

/**
 * Everything that a host has to store, over all its partitions, in one statement (DESIGN 4).
 *
 * `mine` locks the partitions' rows in one order, so that two hosts never wait for each other in a circle, and lets through only those
 * whose epoch, commit number and owner are what this host believes. A partition that another host has taken, or that an earlier try of
 * this very statement has advanced, drops out, and every row joined to it with it. `owned` names the partitions that were committed.
 *
 * Epoch and commit number only grow, except when the database is restored to an earlier time: another owner may then reach the same two
 * again, so the owner is compared too.
 */
const everything: NamedStatement = { name: 'commit', text: statementOf(rowSets) };

/** The same without what no turn brings about: the database spends on each kind of row that a statement names, be there any or not. */
const turnsOnly: NamedStatement = { name: 'commit-turns', text: statementOf(turnSets) };

/** Whether a statement is one of the two: for whoever looks at what a host sends. */
export function isCommit(statement: string | NamedStatement): boolean {
  return statement === turnsOnly || statement === everything;
}

/** The statement that a plan needs, and what it is sent with. */
export function commitOf(plan: CommitPlan): { statement: NamedStatement; parameters: unknown[] } {
  const needsAll = rowSets.some((set, index) => index >= turnSets.length && set.rowsOf(plan).length > 0);
  return needsAll ? { statement: everything, parameters: parametersOf(plan, rowSets) } : { statement: turnsOnly, parameters: parametersOf(plan, turnSets) };
}

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
  select parts.p from parts join unnest($1::int[], $2::bigint[], $3::bigint[], $6::text[]) as i (p, epoch, commit_no, owner) using (p)
  where parts.epoch = i.epoch and parts.commit_no = i.commit_no and parts.owner = i.owner
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
function parametersOf(plan: CommitPlan, sets: readonly RowSet[]): unknown[] {
  const partitions = [...plan.partitions.values()];
  const parameters: unknown[] = [
    partitions.map(({ claim }) => claim.partition),
    partitions.map(({ claim }) => claim.epoch),
    partitions.map(({ claim }) => claim.commitNo),
    partitions.map(({ cursor }) => cursor),
    partitions.map(({ cursorFingerprint }) => cursorFingerprint),
    partitions.map(({ claim }) => claim.owner),
  ];
  for (const { columns, rowsOf } of sets) {
    const rows = rowsOf(plan);
    for (const { value } of columns) parameters.push(rows.map(value));
  }
  return parameters;
}
