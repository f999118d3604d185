import { AsyncLocalStorage } from 'node:async_hooks';
import type { Pool } from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database, NamedStatement, Queryable, QueryResult, TransactionOptions } from '../database.ts';
import { isStalePlan } from '../transient-error.ts';
import { Connection } from './connection.ts';

/** Waiting ones included. More means that the database does not keep up. */
const MAX_IN_FLIGHT = 10_000;

export interface PoolDatabaseOptions {
  /** Closes what is behind the pool, such as the embedded engine. */
  afterEnd?: () => Promise<void>;
  /** One more operation is refused with `service.not_ready`. */
  maxInFlight?: number;
  /** Without a reply for this long a connection counts as dead. Absent: no limit, as suits an engine in this process. */
  queryTimeoutMs?: number;
  onUnreachable?: (cause: Error) => void;
  /** Called when the server reports a PANIC. A supervisor restarts a remote server, but not an engine in this process. */
  onPanic?: (cause: Error) => void;
}

/** Network time beyond the server's own limit. */
export const NETWORK_MARGIN_MS = 5_000;

/**
 * A `Database` over a `pg` pool, for a server or the embedded engine. The pool must be made with `types: columnTypes`; `close` ends it after the
 * operations in flight.
 */
export function poolDatabase(pool: Pool, options: PoolDatabaseOptions = {}): Database {
  // A broken idle connection leaves the pool by itself; an unhandled error event would end the process.
  pool.on('error', () => {});
  return new PoolDatabase(pool, options);
}

/** One call of `transaction`, ended when its work has settled: statements that it left running are refused afterwards. */
interface Scope {
  ended: boolean;
}

class PoolDatabase implements Database {
  readonly #pool: Pool;
  readonly #afterEnd: () => Promise<void>;
  readonly #maxInFlight: number;
  readonly #queryTimeoutMs: number | null;
  readonly #onUnreachable: (cause: Error) => void;
  readonly #onPanic: (cause: Error) => void;
  readonly #scopes = new AsyncLocalStorage<Scope>();
  #transactions = 0;
  #inFlight = 0;
  #whenIdle: (() => void) | null = null;
  #closing: Promise<void> | null = null;

  constructor(pool: Pool, options: PoolDatabaseOptions) {
    this.#pool = pool;
    this.#afterEnd = options.afterEnd ?? (async () => {});
    this.#maxInFlight = options.maxInFlight ?? MAX_IN_FLIGHT;
    this.#queryTimeoutMs = options.queryTimeoutMs ?? null;
    this.#onUnreachable = options.onUnreachable ?? (() => {});
    this.#onPanic = options.onPanic ?? (() => {});
  }

  async query<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row>> {
    // Each connection may hold an outdated plan, which it drops when refused: at most one retry per connection.
    for (let roundsLeft = this.#pool.options.max; ; roundsLeft -= 1) {
      try {
        const { rows, rowCount } = await this.#lease((connection) => connection.send<Row>(statement, parameters));
        return { rows, rowCount };
      } catch (error) {
        if (!isStalePlan(error) || roundsLeft <= 0) throw error;
      }
    }
  }

  async transaction<Result>(work: (handle: Queryable) => Promise<Result>, options: TransactionOptions = {}): Promise<Result> {
    this.#transactions += 1;
    try {
      return await this.#lease((connection) => this.#transact(connection, work, options));
    } finally {
      this.#transactions -= 1;
      // While enabled, AsyncLocalStorage costs every promise of the process.
      if (this.#transactions === 0) this.#scopes.disable();
    }
  }

  async #transact<Result>(connection: Connection, work: (handle: Queryable) => Promise<Result>, options: TransactionOptions): Promise<Result> {
    const scope: Scope = { ended: false };
    const handle = new TransactionHandle(connection, scope);
    await connection.send('begin');
    try {
      if (options.statementTimeoutMs !== undefined) await allowStatements(connection, options.statementTimeoutMs);
      const result = await this.#scopes.run(scope, async () => work(handle));
      scope.ended = true;
      await handle.commit();
      return result;
    } catch (error) {
      scope.ended = true;
      await handle.settled();
      await rollback(connection);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#refuseInsideTransaction();
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #lease<Result>(use: (connection: Connection) => Promise<Result>): Promise<Result> {
    this.#refuseInsideTransaction();
    if (this.#closing !== null) throw new SwitchyardError('storage.closed', 'the database is closed');
    if (this.#inFlight >= this.#maxInFlight) throw new SwitchyardError('service.not_ready', `${this.#inFlight} statements wait for the database already`);
    this.#inFlight += 1;
    try {
      const connection = await this.#connect();
      try {
        return await use(connection);
      } finally {
        connection.release();
      }
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#whenIdle?.();
    }
  }

  #connect(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      // With a promise the client would have no error listener for one microtask.
      this.#pool.connect((error, client) => {
        if (client !== undefined) return resolve(new Connection(client, this.#queryTimeoutMs, this.#onPanic));
        const cause = error ?? new Error('the pool gave neither a connection nor a reason');
        this.#onUnreachable(cause);
        // Even for a wrong password: the statement was not sent and may be retried.
        reject(new SwitchyardError('service.unreachable', 'no connection to the database could be opened', { cause }));
      });
    });
  }

  #refuseInsideTransaction(): void {
    if (this.#scopes.getStore()?.ended === false) {
      throw new SwitchyardError(
        'storage.wrong_handle',
        'inside a transaction only its own handle may be used: with one connection anything else would deadlock',
      );
    }
  }

  async #end(): Promise<void> {
    // `pool.end` drops waiting requests without settling them, so none may be waiting.
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    await this.#pool.end();
    await this.#afterEnd();
  }
}

class TransactionHandle implements Queryable {
  readonly #connection: Connection;
  readonly #scope: Scope;
  /** `pg` refuses to queue statements on a connection. */
  #last: Promise<unknown> = Promise.resolve();
  #firstFailure: unknown = null;

  constructor(connection: Connection, scope: Scope) {
    this.#connection = connection;
    this.#scope = scope;
  }

  async query<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row>> {
    if (this.#scope.ended) throw new SwitchyardError('storage.wrong_handle', 'this transaction has ended, and its handle with it');
    const result = this.#last.then(() => this.#connection.send<Row>(statement, parameters));
    this.#last = result.catch((error: unknown) => {
      this.#firstFailure ??= error;
    });
    const { rows, rowCount } = await result;
    return { rows, rowCount };
  }

  /** Waits for statements that the work did not await. */
  async settled(): Promise<void> {
    await this.#last;
  }

  /** @throws the first failed statement's error when the server answered the commit with ROLLBACK */
  async commit(): Promise<void> {
    await this.settled();
    const { command } = await this.#connection.send('commit');
    if (command === 'ROLLBACK') throw this.#firstFailure;
  }
}

/** On the server and in the client. */
async function allowStatements(connection: Connection, timeoutMs: number): Promise<void> {
  await connection.send("select set_config('statement_timeout', $1, true)", [`${timeoutMs}ms`]);
  connection.setQueryTimeout(timeoutMs + NETWORK_MARGIN_MS);
}

async function rollback(connection: Connection): Promise<void> {
  if (connection.isBroken) return; // the server rolls back by itself
  try {
    await connection.send('rollback');
  } catch (error) {
    // The caller gets the work's own error.
    connection.markBroken(error);
  }
}
