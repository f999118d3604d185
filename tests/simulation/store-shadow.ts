import type { RuntimeStore } from '../../actors/store/runtime-store.ts';
import { sqlRuntimeStore } from '../../actors/store/sql/sql-runtime-store.ts';
import type { Database, NamedStatement, Queryable, QueryResult } from '../../shared/storage/database.ts';
import type { Row } from './model-rows.ts';
import type { StoreCall } from './model-store.ts';
import { simulateClock } from './simulated-clock.ts';
import type { Shadow } from './simulation.ts';

/** Methods whose results have a defined order; `Map` and `Set` have none. */
const ORDERED: ReadonlySet<string> = new Set(['sessions.messages', 'runs.transcript', 'runs.assistantMessages', 'hosts.ofOtherLogs']);
/** The time of a claim is the table’s own default. */
const REAL_TIMES: ReadonlySet<string> = new Set(['claimed_at']);
/** The row count of a statement that returns no rows is compared for claims only, since nothing else reads it. */
const COUNTED = 'effect_worker_claim';

type Answer = { value: unknown } | { error: unknown };

/**
 * A real database beside the model: both execute every call of the runtime's store and every statement of a worker, by the same clock, and must have
 * the same results.
 */
export class StoreShadow implements Shadow {
  readonly #database: Database;
  readonly #setClock: (nowMs: number) => Promise<void>;
  readonly differences: string[] = [];
  calls = 0;
  readonly names = new Map<string, number>();

  private constructor(database: Database, setClock: (nowMs: number) => Promise<void>) {
    this.#database = database;
    this.#setClock = setClock;
  }

  static async over(database: Database): Promise<StoreShadow> {
    const setClock = await simulateClock(database);
    // The table's own default was bound to the system's clock, years before that of the schedules: a sweep would delete young claims.
    await database.query('alter table claims alter column claimed_at set default sim.now()');
    return new StoreShadow(database, setClock);
  }

  call({ name, args }: StoreCall): ReturnType<Shadow['call']> {
    const { database, send } = this.#held();
    // Serialises its arguments now; the statement waits until it is sent.
    const answer = answerOf(() => methodOf(sqlRuntimeStore(database), name)(...args));
    return this.#compare(name, JSON.stringify(args), () => {
      send();
      return answer;
    });
  }

  statement(statement: string | NamedStatement, parameters: readonly unknown[]): ReturnType<Shadow['statement']> {
    const name = typeof statement === 'string' ? statement : statement.name;
    return this.#compare(name, JSON.stringify(parameters), () => answerOf(() => this.#database.query(statement, parameters)));
  }

  /** Compares the final rows of a table with the model's. */
  async compareTable(table: string, rows: readonly Row[]): Promise<void> {
    const { rows: real } = await this.#database.query<Row>(`select * from ${table}`);
    const [wanted, found] = [textOf(real, { isOrdered: false }), textOf(rows, { isOrdered: false })];
    if (wanted !== found) this.differences.push(`${table}\n  real:  ${wanted}\n  model: ${found}`);
  }

  #compare(name: string, args: string, execute: () => Promise<Answer>): ReturnType<Shadow['call']> {
    return async (nowMs, model) => {
      await this.#setClock(nowMs);
      const real = await execute();
      const found = await answerOf(async () => model());
      this.calls += 1;
      this.names.set(name, (this.names.get(name) ?? 0) + 1);
      const [wanted, modelled] = [comparedOf(name, real), comparedOf(name, found)];
      if (wanted !== modelled) this.differences.push(`${name}(${args.slice(0, 300)})\n  real:  ${wanted}\n  model: ${modelled}`);
      if ('error' in found) throw found.error;
      return found.value;
    };
  }

  /** A handle whose statements wait for `send`. */
  #held(): { database: Queryable; send(): void } {
    let send = () => {};
    const sent = new Promise<void>((resolve) => {
      send = resolve;
    });
    const query: Queryable['query'] = async (statement, parameters) => {
      await sent;
      return this.#database.query(statement, parameters);
    };
    return { database: { query }, send };
  }
}

function methodOf(store: RuntimeStore, path: string): (...args: readonly unknown[]) => Promise<unknown> {
  const [part = '', name] = path.split('.');
  const found: unknown = name === undefined ? Reflect.get(store, part) : Reflect.get(Reflect.get(store, part), name);
  return found as (...args: readonly unknown[]) => Promise<unknown>;
}

async function answerOf(execute: () => Promise<unknown>): Promise<Answer> {
  try {
    return { value: await execute() };
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    return { error };
  }
}

function comparedOf(name: string, answer: Answer): string {
  if ('error' in answer) return `error ${(answer.error as { code: string }).code}`;
  const { value } = answer;
  if (name === COUNTED) return String((value as QueryResult<object>).rowCount);
  if (isQueryResult(value)) return textOf(value.rows, { isOrdered: false });
  // Several partitions may share the lowest cursor.
  if (name === 'partitions.lowestCursor') return JSON.stringify((value as { sequence: number } | null)?.sequence);
  if (typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'repeated') return 'repeated';
  return textOf(value, { isOrdered: ORDERED.has(name) });
}

function isQueryResult(value: unknown): value is QueryResult<object> {
  return typeof value === 'object' && value !== null && 'rowCount' in value;
}

/** As text, with the keys of objects in order, and the entries of collections unless their order is defined. */
function textOf(value: unknown, { isOrdered }: { isOrdered: boolean }): string {
  if (value instanceof Map) return textOf([...value], { isOrdered: false });
  if (value instanceof Set) return textOf([...value], { isOrdered: false });
  if (Array.isArray(value)) {
    const texts = value.map((one) => textOf(one, { isOrdered: true }));
    return `[${(isOrdered ? texts : texts.sort()).join(',\n')}]`;
  }
  if (typeof value !== 'object' || value === null || value instanceof Date) return JSON.stringify(value) ?? 'undefined';
  const entries = Object.entries(value).filter(([key]) => !REAL_TIMES.has(key));
  const texts = entries.map(([key, one]) => `${key}: ${textOf(one, { isOrdered: key !== 'released' })}`);
  return `{${texts.sort().join(', ')}}`;
}
