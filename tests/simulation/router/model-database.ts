import type { Database, NamedStatement, Queryable, QueryResult } from '../../../shared/storage/database.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import { databaseAway, type LedgerTables } from './ledger-tables.ts';

interface Transaction {
  process: Process;
  /** Null until its first statement. */
  rollBack: (() => void) | null;
  /** Its client is gone: it ends with its connection. */
  isClientGone: boolean;
  isOver: boolean;
  /** What is still to be executed of it. */
  pending: (() => unknown)[];
}

interface DatabaseDeps {
  scheduler: Scheduler;
  tables: LedgerTables;
  /** Called when rows have changed and are committed. */
  committed(): void;
}

/**
 * The database of gateways and workers: each statement is a step, and may be executed without an answer, or never. A transaction locks all tables until it
 * ends, where PostgreSQL locks rows of keys; it is rolled back when its connection ends before its commit was executed.
 */
export class RouterDatabase {
  readonly #deps: DatabaseDeps;
  #locking: Transaction | null = null;
  isAway = false;

  constructor(deps: DatabaseDeps) {
    this.#deps = deps;
  }

  of(process: Process): Database {
    const query = (statement: string | NamedStatement, parameters: readonly unknown[] = []) => this.#query(process, statement, parameters);
    return {
      query: query as Queryable['query'],
      transaction: (work) => this.#transaction(process, work),
      close: async () => {},
    };
  }

  /** All connections end, as with the server. */
  breakOff(): void {
    this.#deps.scheduler.breakOff(databaseLost);
    if (this.#locking !== null) this.#clientGone(this.#locking);
  }

  #query(process: Process, statement: string | NamedStatement, parameters: readonly unknown[]): Promise<QueryResult<object>> {
    const name = nameOf(statement);
    const execute = () => {
      const result = this.#execute(name, parameters);
      this.#deps.committed();
      return result;
    };
    return this.#deps.scheduler.park(process, name, databaseLost, execute, () => this.#isLockedFor(null));
  }

  #execute(name: string, parameters: readonly unknown[]): QueryResult<object> {
    if (this.isAway) throw databaseAway();
    const rows = this.#deps.tables.execute(name, parameters, this.#deps.scheduler.nowMs);
    return { rows, rowCount: rows.length };
  }

  async #transaction<Result>(process: Process, work: (handle: Queryable) => Promise<Result>): Promise<Result> {
    const transaction: Transaction = { process, rollBack: null, isClientGone: false, isOver: false, pending: [] };
    const query = (statement: string | NamedStatement, parameters: readonly unknown[] = []) =>
      this.#inside(transaction, nameOf(statement), () => {
        transaction.rollBack ??= this.#begin(transaction);
        return this.#execute(nameOf(statement), parameters);
      });
    try {
      const result = await work({ query: query as Queryable['query'] });
      await this.#inside(transaction, 'commit', () => {
        if (this.isAway) throw databaseAway();
        this.#end(transaction);
        this.#deps.committed();
      });
      return result;
    } catch (error) {
      this.#clientGone(transaction);
      throw error;
    }
  }

  #inside<Result>(transaction: Transaction, label: string, execute: () => Result): Promise<Result> {
    const { scheduler } = this.#deps;
    const executeOnce = () => {
      transaction.pending.splice(transaction.pending.indexOf(executeOnce), 1);
      // The server found the connection closed.
      if (transaction.isOver) throw databaseLost();
      return execute();
    };
    transaction.pending.push(executeOnce);
    return scheduler.park(transaction.process, label, databaseLost, executeOnce, () => this.#isLockedFor(transaction));
  }

  #begin(transaction: Transaction): () => void {
    this.#locking = transaction;
    return this.#deps.tables.begin();
  }

  #end(transaction: Transaction): void {
    transaction.isOver = true;
    if (this.#locking === transaction) this.#locking = null;
  }

  /** Rolled back, unless its commit is on its way to the server. */
  #clientGone(transaction: Transaction): void {
    transaction.isClientGone = true;
    if (transaction.isOver || this.#isOnItsWay(transaction)) return;
    if (this.#locking === transaction) transaction.rollBack?.();
    this.#end(transaction);
  }

  #isOnItsWay({ pending }: Transaction): boolean {
    return this.#deps.scheduler.parked.some(({ execute }) => pending.includes(execute));
  }

  #isLockedFor(transaction: Transaction | null): boolean {
    const locking = this.#locking;
    if (locking === null || locking === transaction) return false;
    if (locking.process.state !== 'dead' && !locking.isClientGone) return true;
    this.#clientGone(locking);
    return !locking.isOver;
  }
}

function databaseLost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
}

function nameOf(statement: string | NamedStatement): string {
  return typeof statement === 'string' ? statement : statement.name;
}
