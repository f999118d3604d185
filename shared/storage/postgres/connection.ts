import pg, { type QueryResult as PgResult, type PoolClient } from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import type { NamedStatement, QueryResult } from '../database.ts';
import { isStalePlan } from '../transient-error.ts';

/** PostgreSQL's codes after which a connection is of no use, though it may still be open. */
const ENDS_CONNECTION = [
  /^08/, // lost half-way
  /^57P/, // the server shuts down, crashed, or a person ended the session
  /^25P0[345]$/, // a transaction or session that was idle too long
  /^25006$/, // a server that only reads: the writer is another one by now, and a new connection may find it
];

/**
 * One connection of the pool while one operation uses it: it sends statements, bounds their time and knows whether the connection is
 * still good. Whoever takes one gives it back with `release`.
 */
export class Connection {
  readonly #client: PoolClient;
  #limitMs: number | null;
  readonly #onPanic: (error: Error) => void;
  #broken: Error | null = null;
  /** Why a prepared statement of this connection is refused from now on; a new connection prepares it anew. */
  #stale: Error | null = null;
  readonly #onError = (error: Error): void => {
    this.#broken ??= error;
  };

  /**
   * To be called in the very callback that hands the client out: the pool listens to idle clients only, and an error that nobody hears
   * ends the process.
   * @param limitMs how long a statement may go without its whole answer before the connection counts as dead; null: for ever
   * @param onPanic told when the server says that it ends itself
   */
  constructor(client: PoolClient, limitMs: number | null, onPanic: (error: Error) => void) {
    this.#client = client;
    this.#limitMs = limitMs;
    this.#onPanic = onPanic;
    client.on('error', this.#onError);
  }

  /** Whether the connection is known to be of no further use. */
  get isBroken(): boolean {
    return this.#broken !== null;
  }

  /** Another limit, for this operation alone. Where there is none, none is made. */
  setQueryTimeout(limitMs: number): void {
    if (this.#limitMs !== null) this.#limitMs = limitMs;
  }

  /** Nobody knows what state the connection is in. */
  giveUp(reason: unknown): void {
    this.#broken ??= reason instanceof Error ? reason : new Error('a transaction could not be rolled back', { cause: reason });
  }

  /** Makes the session forget what it has prepared, in place of throwing the connection away. @param clearList of those that the client believes in */
  async forgetStatements(clearList: () => void): Promise<void> {
    await this.send('deallocate all');
    clearList();
    this.#stale = null;
  }

  /** Gives the connection back to the pool, which throws a broken one away. */
  release(): void {
    this.#client.removeListener('error', this.#onError);
    this.#client.release(this.#broken ?? this.#stale ?? undefined);
  }

  /** @throws the server's error, or `service.unreachable` when the connection broke: then nobody knows whether the statement was carried out */
  async send<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row> & { command: string }> {
    if (this.#broken !== null) throw connectionLost(this.#broken);
    const values = parameters.map(toWire);
    const config = typeof statement === 'string' ? { text: statement, values } : { name: statement.name, text: statement.text, values };
    try {
      const answer: PgResult | PgResult[] = await this.#inTime(this.#client.query(config));
      // A text of several statements, as migrations are, gives a result for each.
      const result = Array.isArray(answer) ? answer.at(-1) : answer;
      return { rows: result?.rows ?? [], rowCount: result?.rowCount ?? 0, command: result?.command ?? '' };
    } catch (error) {
      throw this.#judge(error);
    }
  }

  /**
   * The server ends a statement that takes too long by itself; a server that has gone silently, with its machine or the way to it, ends
   * nothing, and TCP may take a quarter of an hour to notice.
   */
  async #inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const limitMs = this.#limitMs;
    if (limitMs === null) return answer;
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        this.#broken ??= new Error(`the database gave no answer within ${limitMs} ms`);
        reject(this.#broken);
      }, limitMs);
    });
    try {
      return await Promise.race([answer, silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  #judge(error: unknown): unknown {
    // Asked of any error: an embedded engine's are of a class of its own.
    if (error instanceof Error && 'severity' in error && error.severity === 'PANIC') this.#onPanic(error);
    if (error instanceof pg.DatabaseError) {
      if (isStalePlan(error)) this.#stale = error;
      if (ENDS_CONNECTION.some((code) => code.test(error.code ?? ''))) this.#broken ??= error;
      return error;
    }
    // The connection's own event comes before the statement's rejection, so this tells a lost connection from a fault of the program's.
    return this.#broken === null ? error : connectionLost(this.#broken);
  }
}

function connectionLost(cause: Error): SwitchyardError {
  return new SwitchyardError('service.unreachable', 'the connection to the database was lost', { cause });
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
