import type { NamedStatement } from '#shared/storage/database.ts';
import type { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import type { RowSet } from './row-set.ts';
import { rowSets, stagedTurnSets, turnSets } from './row-sets.ts';

/** Partition, epoch, commit number, cursor, its fingerprint, owner. */
const FENCE_PARAMETERS = 6;

/**
 * A whole commit, over all partitions of a host, as one statement (DESIGN 4).
 *
 * `mine` locks the partitions' rows in a fixed order, against deadlocks between hosts, and passes only those with the expected epoch, commit number
 * and owner. A partition that another host acquired, or that an earlier try of this statement advanced, drops out with every row joined to it.
 * `owned` returns the committed ones.
 *
 * The owner is compared because a restored database resets epoch and commit number, and another owner may reach the same pair.
 */
interface Form {
  statement: NamedStatement;
  sets: readonly RowSet[];
}

const whole = formOf('commit', rowSets.length);

/** Each kind of rows costs time even without rows: without those that no turn writes, and without those that only some turns write. Shortest first. */
const forms: readonly Form[] = [formOf('commit-turns', turnSets.length), formOf('commit-staged-turns', turnSets.length + stagedTurnSets.length), whole];

/** Recognises commits among a host's queries. */
export function isCommit(statement: string | NamedStatement): boolean {
  return forms.some((form) => form.statement === statement);
}

export function commitOf(plan: CommitPlan): { statement: NamedStatement; parameters: unknown[] } {
  const last = rowSets.findLastIndex(({ rowsOf }) => rowsOf(plan).length > 0);
  const { statement, sets } = forms.find((form) => form.sets.length > last) ?? whole;
  return { statement, parameters: parametersOf(plan, sets) };
}

function formOf(name: string, kinds: number): Form {
  const sets = rowSets.slice(0, kinds);
  return { statement: { name, text: statementOf(sets) }, sets };
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

/** One array per column; JSON as text, cast in the statement. */
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
