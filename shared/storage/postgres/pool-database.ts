import { AsyncLocalStorage } from 'node:async_hooks';
import type { QueryResult as PgResult, Pool, PoolClient } from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { Database, NamedStatement, Queryable, QueryResult } from '../database.ts';

/** Statements and transactions that may be in hand at once, waiting ones included. More means that the database does not keep up. */
const MAX_IN_HAND = 10_000;

export interface PoolDatabaseOptions {
  /** Closes what stands behind the pool, after its connections have gone. */
  afterEnd?: () => Promise<void>;
  /** Operations that are accepted at once; one more is refused with `service.not_ready`. */
  maxInHand?: number;
}

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

/** A connection while one operation uses it. */
interface Lease {
  client: PoolClient;
  /** Why the connection can't be used again; null while it can. */
  broken: Error | null;
}

class PoolDatabase implements Database {
  readonly #pool: Pool;
  readonly #afterEnd: () => Promise<void>;
  readonly #maxInHand: number;
  readonly #scopes = new AsyncLocalStorage<Scope>();
  #inHand = 0;
  #whenIdle: (() => void) | null = null;
  #closing: Promise<void> | null = null;

  constructor(pool: Pool, options: PoolDatabaseOptions) {
    this.#pool = pool;
    this.#afterEnd = options.afterEnd ?? (async () => {});
    this.#maxInHand = options.maxInHand ?? MAX_IN_HAND;
  }

  async query<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row>> {
    return this.#lease(({ client }) => send<Row>(client, statement, parameters));
  }

  async transaction<Result>(work: (handle: Queryable) => Promise<Result>): Promise<Result> {
    return this.#lease(async (lease) => {
      const scope: Scope = { ended: false };
      const handle = new TransactionHandle(lease.client, scope);
      await lease.client.query('begin');
      try {
        const result = await this.#scopes.run(scope, async () => work(handle));
        scope.ended = true;
        await handle.commit();
        return result;
      } catch (error) {
        scope.ended = true;
        await handle.settled();
        await rollback(lease);
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    this.#refuseInsideTransaction();
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #lease<Result>(use: (lease: Lease) => Promise<Result>): Promise<Result> {
    this.#refuseInsideTransaction();
    if (this.#closing !== null) throw new SwitchyardError('storage.closed', 'the database is closed');
    if (this.#inHand >= this.#maxInHand) throw new SwitchyardError('service.not_ready', `${this.#inHand} statements wait for the database already`);
    this.#inHand += 1;
    try {
      const lease: Lease = { client: await this.#pool.connect(), broken: null };
      // The pool listens to idle connections only; a connection that breaks in our hands would otherwise end the process.
      const onError = (error: Error) => {
        lease.broken = error;
      };
      lease.client.on('error', onError);
      try {
        return await use(lease);
      } finally {
        lease.client.removeListener('error', onError);
        lease.client.release(lease.broken ?? undefined);
      }
    } finally {
      this.#inHand -= 1;
      if (this.#inHand === 0) this.#whenIdle?.();
    }
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
    if (this.#inHand > 0) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve;
      });
    }
    await this.#pool.end();
    await this.#afterEnd();
  }
}

class TransactionHandle implements Queryable {
  readonly #client: PoolClient;
  readonly #scope: Scope;
  /** One statement at a time: `pg` refuses to queue more on a connection. */
  #last: Promise<unknown> = Promise.resolve();
  #firstFailure: unknown = null;

  constructor(client: PoolClient, scope: Scope) {
    this.#client = client;
    this.#scope = scope;
  }

  async query<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row>> {
    if (this.#scope.ended) throw new SwitchyardError('storage.wrong_handle', 'this transaction has ended, and its handle with it');
    const result = this.#last.then(() => send<Row>(this.#client, statement, parameters));
    this.#last = result.catch((error: unknown) => {
      this.#firstFailure ??= error;
    });
    return result;
  }

  /** Waits for the statements that the work sent and did not await. */
  async settled(): Promise<void> {
    await this.#last;
  }

  /** @throws the first failed statement's error, when it made the server roll back in place of committing although the work went on. */
  async commit(): Promise<void> {
    await this.settled();
    const { command } = await this.#client.query('commit');
    if (command === 'ROLLBACK') throw this.#firstFailure;
  }
}

async function rollback(lease: Lease): Promise<void> {
  try {
    await lease.client.query('rollback');
  } catch (error) {
    // The caller learns why the work failed. A connection in an unknown state is thrown away, and the server rolls back by itself.
    lease.broken ??= error instanceof Error ? error : new Error('a transaction could not be rolled back', { cause: error });
  }
}

async function send<Row extends object>(client: PoolClient, statement: string | NamedStatement, parameters: readonly unknown[]): Promise<QueryResult<Row>> {
  const values = parameters.map(toWire);
  const config = typeof statement === 'string' ? { text: statement, values } : { name: statement.name, text: statement.text, values };
  const answer: PgResult | PgResult[] = await client.query(config);
  // A text of several statements, as migrations are, gives a result for each.
  const result = Array.isArray(answer) ? answer.at(-1) : answer;
  return { rows: result?.rows ?? [], rowCount: result?.rowCount ?? 0 };
}

/**
 * Objects become JSON here and not inside `pg`: an object that can't be written, say a circular one, would fail there between parse and
 * bind, and leave behind a named statement that the client believes in and the server has dropped.
 */
function toWire(value: unknown): unknown {
  if (!isObject(value) || value instanceof Date || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.some(isObject) ? value.map(toWire) : value;
  return JSON.stringify(value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
