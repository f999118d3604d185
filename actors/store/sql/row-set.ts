import type { CommitPlan } from '../../runtime/apply/commit-plan.ts';

/** One kind of rows in a commit: an array parameter per column, and the SQL that writes them. */
export interface RowSet {
  name: string;
  columns: readonly { name: string; type: string; value(row: unknown): unknown }[];
  /** @param from the rows of partitions still owned, as `i` */
  sql(from: string): string;
  rowsOf(plan: CommitPlan): readonly unknown[];
}

export type Columns<Row> = Record<string, [type: string, value: (row: Row) => unknown]>;

/** Ties the columns' row type to that of `rowsOf`. */
export function rowSet<Row>(name: string, rowsOf: (plan: CommitPlan) => readonly Row[], columns: Columns<Row>, sql: (from: string) => string): RowSet {
  const list = Object.entries(columns).map(([column, [type, value]]) => ({ name: column, type, value: value as (row: unknown) => unknown }));
  return { name, columns: list, sql, rowsOf };
}

/** PostgreSQL's text refuses NUL, and a dead letter must always be stored. */
export function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}

export function instant(atMs: number): string {
  return new Date(atMs).toISOString();
}
