import { AsyncLocalStorage } from 'node:async_hooks';
import type { Pool } from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database, NamedStatement, Queryable, QueryResult, TransactionOptions } from '../database.ts';
import { isStalePlan } from '../transient-error.ts';
import { Connection } from './connection.ts';

/** Statements and transactions that may be in hand at once, waiting ones included. More means that the database does not keep up. */
const MAX_IN_HAND = 10_000;

export interface PoolDatabaseOptions {
  /** Closes what stands behind the pool, after its connections have gone. */
  afterEnd?: () => Promise<void>;
  /** Operations that are accepted at once; one more is refused with `service.not_ready`. */
  maxInHand?: number;
  /** How long a statement may go without an answer before its connection counts as dead. Without it: for ever, as suits an engine in our own process. */
  queryTimeoutMs?: number;
  /** For an engine whose one session outlives all connections: empties the adapter's list of prepared statements, once the engine has forgotten them. */
  forgetStatements?: () => void;
  /** Told why whenever no connection could be had. */
  onUnreachable?: (cause: Error) => void;
  /** Told why when the server ends itself. One on another machine is started again by somebody; an engine in our own process is not. */
  onPanic?: (cause: Error) => void;
}

/** Time for the answer to travel, on top of what the server may take to give it. */
export const TRAVEL_MS = 5_000;

/**
 * The database behind a pool of `pg`, whatever server or embedded engine the pool leads to. The pool is made with
 * `types: columnTypes` and belongs to the database from here on: `close` ends it, after the operations in hand.
 */
export function poolDatabase(pool: Pool, options: PoolDatabaseOptions = {}): Database {
  // An idle connection that breaks leaves the pool by itself and the next statement opens another; unheard, the event would end the process.
  pool.on('error', () => {});
  return new PoolDatabase(pool, options);
}

/** One run of `transaction`. Ended as soon as its work has settled: what its work left running belongs to it no longer. */
interface Scope {
  ended: boolean;
}

class PoolDatabase implements Database {
  readonly #pool: Pool;
  readonly #afterEnd: () => Promise<void>;
  readonly #maxInHand: number;
  readonly #queryTimeoutMs: number | null;
  readonly #forgetStatements: (() => void) | null;
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
    this.#maxInHand = options.maxInHand ?? MAX_IN_HAND;
    this.#queryTimeoutMs = options.queryTimeoutMs ?? null;
    this.#forgetStatements = options.forgetStatements ?? null;
    this.#onUnreachable = options.onUnreachable ?? (() => {});
    this.#onPanic = options.onPanic ?? (() => {});
  }

  async query<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row>> {
    // Each connection may hold an outdated plan of the statement, and loses it by being refused: so at most one round for each, and the last.
    for (let roundsLeft = this.#pool.options.max; ; roundsLeft -= 1) {
      try {
        const { rows, rowCount } = await this.#lease((connection) => this.#sendOrDiscard<Row>(connection, statement, parameters));
        return { rows, rowCount };
      } catch (error) {
        if (!isStalePlan(error) || roundsLeft <= 0) throw error;
      }
    }
  }

  async #sendOrDiscard<Row extends object>(connection: Connection, statement: string | NamedStatement, parameters: readonly unknown[]) {
    try {
      return await connection.send<Row>(statement, parameters);
    } catch (error) {
      if (isStalePlan(error) && this.#forgetStatements !== null) await connection.forgetStatements(this.#forgetStatements);
      throw error;
    }
  }

  async transaction<Result>(work: (handle: Queryable) => Promise<Result>, options: TransactionOptions = {}): Promise<Result> {
    this.#transactions += 1;
    try {
      return await this.#lease((connection) => this.#transact(connection, work, options));
    } finally {
      this.#transactions -= 1;
      // Everything in the process that waits for anything pays for it for as long as it is on.
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
    if (this.#inFlight >= this.#maxInHand) throw new SwitchyardError('service.not_ready', `${this.#inFlight} statements wait for the database already`);
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
      // By callback: a promise would leave a moment in which nobody listens to the client.
      this.#pool.connect((error, client) => {
        if (client !== undefined) return resolve(new Connection(client, this.#queryTimeoutMs, this.#onPanic));
        const cause = error ?? new Error('the pool gave neither a connection nor a reason');
        this.#onUnreachable(cause);
        // Whatever the reason, even a wrong password: the statement was never sent, and is none the worse for it.
        reject(new SwitchyardError('service.unreachable', 'no connection to the database could be had', { cause }));
      });
    });
  }

  #refuseInsideTransaction(): void {
    if (this.#scopes.getStore()?.ended === false) {
      throw new SwitchyardError(
        'storage.wrong_handle',
        'inside a transaction only its own handle may be used: with one connection anything else waits for itself',
      );
    }
  }

  async #end(): Promise<void> {
    // A pool that ends forgets who waits for a connection, so nobody may be waiting.
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
  /** One statement at a time: `pg` refuses to queue more on a connection. */
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

  /** Waits for the statements that the work sent and did not await. */
  async settled(): Promise<void> {
    await this.#last;
  }

  /** @throws the first failed statement's error, when it made the server roll back in place of committing although the work went on. */
  async commit(): Promise<void> {
    await this.settled();
    const { command } = await this.#connection.send('commit');
    if (command === 'ROLLBACK') throw this.#firstFailure;
  }
}

/** For the transaction at hand alone, on the server as on our side of the line. */
async function allowStatements(connection: Connection, timeoutMs: number): Promise<void> {
  await connection.send("select set_config('statement_timeout', $1, true)", [`${timeoutMs}ms`]);
  connection.setQueryTimeout(timeoutMs + TRAVEL_MS);
}

async function rollback(connection: Connection): Promise<void> {
  if (connection.isBroken) return; // the server rolls back by itself
  try {
    await connection.send('rollback');
  } catch (error) {
    // The caller learns why the work failed. A connection in an unknown state is thrown away.
    connection.giveUp(error);
  }
}
