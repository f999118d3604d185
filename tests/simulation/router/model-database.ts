import type { Database, NamedStatement, Queryable, QueryResult } from '../../../shared/storage/database.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import { databaseAway, type LedgerTables } from './ledger-tables.ts';

interface DatabaseDeps {
  scheduler: Scheduler;
  tables: LedgerTables;
  /** Called when rows have changed and are committed. */
  committed(): void;
}

/**
 * The database of gateways and workers: each statement is a step that commits by itself, and may be executed without an answer, or never. The router has no
 * transactions of several statements: they would keep rows locked while their process is paused.
 */
export class RouterDatabase {
  readonly #deps: DatabaseDeps;
  isAway = false;

  constructor(deps: DatabaseDeps) {
    this.#deps = deps;
  }

  of(process: Process): Database {
    const query = (statement: string | NamedStatement, parameters: readonly unknown[] = []) => this.#query(process, statement, parameters);
    return {
      query: query as Queryable['query'],
      transaction: () => Promise.reject(new TypeError('the model has no transactions')),
      close: async () => {},
    };
  }

  /** All connections end, as with the server. */
  breakOff(): void {
    this.#deps.scheduler.breakOff(databaseLost);
  }

  #query(process: Process, statement: string | NamedStatement, parameters: readonly unknown[]): Promise<QueryResult<object>> {
    const name = nameOf(statement);
    const execute = () => {
      const result = this.#execute(name, parameters);
      this.#deps.committed();
      return result;
    };
    return this.#deps.scheduler.park(process, name, databaseLost, execute);
  }

  #execute(name: string, parameters: readonly unknown[]): QueryResult<object> {
    if (this.isAway) throw databaseAway();
    const rows = this.#deps.tables.execute(name, parameters, this.#deps.scheduler.nowMs);
    return { rows, rowCount: rows.length };
  }
}

function databaseLost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
}

function nameOf(statement: string | NamedStatement): string {
  return typeof statement === 'string' ? statement : statement.name;
}
