import type { Database, NamedStatement, QueryResult } from '../../shared/storage/database.ts';
import type { Row } from './model-rows.ts';
import type { Shadow } from './simulation.ts';

/** Statements whose rows have a defined order. */
const ORDERED = /^load-history$|order by seq/;
/** The time of a claim is the table’s own default. */
const REAL_TIMES: ReadonlySet<string> = new Set(['claimed_at']);
/** It reads the lowest cursor, which several partitions may share. */
const TIED = /order by cursor limit 1/;

type Answer = { rows: readonly object[]; rowCount: number } | { code: string };

/**
 * A real database beside the model: both execute every statement, by the same clock, and must have the same results. `now()` and
 * `clock_timestamp()` are found in a schema that goes before the system's.
 */
export class StatementShadow implements Shadow {
  readonly #database: Database;
  #nowMs = -1;
  readonly differences: string[] = [];
  statements = 0;
  readonly names = new Map<string, number>();

  private constructor(database: Database) {
    this.#database = database;
  }

  static async over(database: Database): Promise<StatementShadow> {
    await database.query('create schema sim');
    for (const name of ['now', 'clock_timestamp']) {
      const clock = `select timestamptz 'epoch' + current_setting('sim.now')::bigint * interval '1 ms'`;
      await database.query(`create function sim.${name}() returns timestamptz language sql stable as '${clock.replaceAll("'", "''")}'`);
    }
    // The table's own default was bound to the system's clock, years before that of the schedules: a sweep would delete young claims.
    await database.query('alter table claims alter column claimed_at set default sim.now()');
    await database.query('set search_path = sim, public, pg_catalog');
    return new StatementShadow(database);
  }

  async compare(
    statement: string | NamedStatement,
    parameters: readonly unknown[],
    nowMs: number,
    carry: () => QueryResult<object>,
  ): Promise<QueryResult<object>> {
    if (nowMs !== this.#nowMs) await this.#database.query(`select set_config('sim.now', $1, false)`, [String(nowMs)]);
    this.#nowMs = nowMs;
    const real = await answerOf(() => this.#database.query(statement, parameters));
    const model = await answerOf(async () => carry());
    const name = typeof statement === 'string' ? statement.replaceAll(/\s+/g, ' ').trim() : statement.name;
    this.statements += 1;
    this.names.set(name, (this.names.get(name) ?? 0) + 1);
    const [wanted, found] = [textOf(name, real.answer), textOf(name, model.answer)];
    if (wanted !== found) this.differences.push(`${name}(${JSON.stringify(parameters).slice(0, 300)})\n  real:  ${wanted}\n  model: ${found}`);
    return model.give();
  }

  /** Compares the final rows of a table with the model's. */
  async compareTable(table: string, rows: readonly Row[]): Promise<void> {
    const { rows: real } = await this.#database.query<Row>(`select * from ${table}`);
    const [wanted, found] = [sorted(real), sorted(rows)];
    if (wanted !== found) this.differences.push(`${table}\n  real:  ${wanted}\n  model: ${found}`);
  }
}

async function answerOf(carry: () => Promise<QueryResult<object>>): Promise<{ answer: Answer; give(): QueryResult<object> }> {
  try {
    const result = await carry();
    return { answer: result, give: () => result };
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    return {
      answer: { code: String(error.code) },
      give: () => {
        throw error;
      },
    };
  }
}

function textOf(name: string, answer: Answer): string {
  if ('code' in answer) return `error ${answer.code}`;
  // The row count of a statement that returns no rows is compared for claims only, since nothing else reads it.
  const count = name === 'effect_worker_claim' ? ` ${answer.rowCount}` : '';
  if (TIED.test(name)) return JSON.stringify(answer.rows.map((row) => (row as Row)['cursor']));
  if (name === 'effect_worker_claim') return count;
  return ORDERED.test(name) ? JSON.stringify(answer.rows.map(inOrder)) : sorted(answer.rows);
}

function sorted(rows: readonly object[]): string {
  return rows
    .map((row) => JSON.stringify(inOrder(row)))
    .sort()
    .join('\n');
}

/** Columns by their names; the owned partitions in order. */
function inOrder(row: object): object {
  const entries = Object.entries(row).filter(([column]) => !REAL_TIMES.has(column));
  const values = entries.map(([column, value]) => [column, column === 'owned' ? [...(value as number[])].sort((left, right) => left - right) : value] as const);
  return Object.fromEntries(values.sort(([left], [right]) => (left < right ? -1 : 1)));
}
