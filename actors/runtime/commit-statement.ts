import type { NamedStatement } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';
import { type RowSet, rowSets, turnSets } from './row-sets.ts';

/** The fence's own parameters come first: partition, epoch, commit number, cursor, cursor's fingerprint, owner. */
const FENCE_PARAMETERS = 6;

/**
 * All rows of a commit, over all partitions of a host, in one statement (DESIGN 4).
 *
 * `mine` locks the partitions' rows in a fixed order, which prevents deadlocks between hosts, and passes only those whose epoch, commit number and
 * owner are what this host expects. A partition that another host has acquired, or that an earlier try of this statement has advanced, drops out
 * with every row joined to it. `owned` returns the partitions that were committed.
 *
 * Epoch and commit number only grow, except when the database is restored to an earlier time: another owner may then reach the same pair, so the
 * owner is compared too.
 */
const everything: NamedStatement = { name: 'commit', text: statementOf(rowSets) };

/** Without the row kinds that no turn writes: each kind costs the database time even without rows. */
const turnsOnly: NamedStatement = { name: 'commit-turns', text: statementOf(turnSets) };

/** Whether a statement is one of the two commits; for observers of a host's queries. */
export function isCommit(statement: string | NamedStatement): boolean {
  return statement === turnsOnly || statement === everything;
}

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

/** One array per column, in the statement's order. JSON is passed as text and cast in the statement. */
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
