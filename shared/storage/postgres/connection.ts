import pg, { type QueryResult as PgResult, type PoolClient } from 'pg';
import { SwitchyardError } from '../../errors/switchyard-error.ts';
import { within } from '../../within.ts';
import type { NamedStatement, QueryResult } from '../database.ts';
import { isStalePlan } from '../transient-error.ts';

/** SQLSTATEs after which a connection is unusable. */
const ENDS_CONNECTION = [
  /^08/, // connection exceptions
  /^57P/, // shutdown, crash, or ended by an operator
  /^25P0[345]$/, // an idle transaction or session timed out
  /^25006$/, // read-only after a failover: a new connection may find the primary
];

/** One pooled connection during one operation: bounds its statements and tracks whether it is still usable. The caller has to call `release`. */
export class Connection {
  readonly #client: PoolClient;
  #limitMs: number | null;
  readonly #onPanic: (error: Error) => void;
  #broken: Error | null = null;
  /** A prepared statement was refused as outdated; a new connection prepares it again. */
  #stale: Error | null = null;
  readonly #onError = (error: Error): void => {
    this.#broken ??= error;
  };

  /**
   * Call it in the very callback that returns the client: outside the pool an unhandled error event ends the process.
   * @param limitMs without a complete reply for this long the connection counts as dead; null: no limit
   * @param onPanic called when the server reports a PANIC
   */
  constructor(client: PoolClient, limitMs: number | null, onPanic: (error: Error) => void) {
    this.#client = client;
    this.#limitMs = limitMs;
    this.#onPanic = onPanic;
    client.on('error', this.#onError);
  }

  get isBroken(): boolean {
    return this.#broken !== null;
  }

  /** For this operation; no effect without a limit. */
  setQueryTimeout(limitMs: number): void {
    if (this.#limitMs !== null) this.#limitMs = limitMs;
  }

  /** Marks the connection unusable: its state is unknown. */
  markBroken(reason: unknown): void {
    this.#broken ??= reason instanceof Error ? reason : new Error('a transaction could not be rolled back', { cause: reason });
  }

  /** The pool discards a broken connection. */
  release(): void {
    this.#client.removeListener('error', this.#onError);
    this.#client.release(this.#broken ?? this.#stale ?? undefined);
  }

  /** @throws the server's error, or `service.unreachable` when the connection broke: the statement may have been executed */
  async send<Row extends object>(statement: string | NamedStatement, parameters: readonly unknown[] = []): Promise<QueryResult<Row> & { command: string }> {
    if (this.#broken !== null) throw connectionLost(this.#broken);
    const values = parameters.map(toWire);
    const config = typeof statement === 'string' ? { text: statement, values } : { name: statement.name, text: statement.text, values };
    try {
      const answer: PgResult | PgResult[] = await this.#inTime(this.#client.query(config));
      // Several statements in one text, as in a migration, give one result each.
      const result = Array.isArray(answer) ? answer.at(-1) : answer;
      return { rows: result?.rows ?? [], rowCount: result?.rowCount ?? 0, command: result?.command ?? '' };
    } catch (error) {
      throw this.#classify(error);
    }
  }

  /** For a server or network that dies silently: TCP may take a quarter of an hour to notice. */
  async #inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const limitMs = this.#limitMs;
    if (limitMs === null) return answer;
    return within(limitMs, answer, () => {
      this.#broken ??= new Error(`the database gave no answer within ${limitMs} ms`);
      throw this.#broken;
    });
  }

  #classify(error: unknown): unknown {
    if (error instanceof pg.DatabaseError) {
      if (error.severity === 'PANIC') this.#onPanic(error);
      if (isStalePlan(error)) this.#stale = error;
      if (ENDS_CONNECTION.some((code) => code.test(error.code ?? ''))) this.#broken ??= error;
      return error;
    }
    // The connection's error event comes before the statement's rejection.
    return this.#broken === null ? error : connectionLost(this.#broken);
  }
}

function connectionLost(cause: Error): SwitchyardError {
  return new SwitchyardError('service.unreachable', 'the connection to the database was lost', { cause });
}

/**
 * Serializes objects here: where `pg` fails to, as for a circular object, it leaves a named statement that the client believes prepared and the
 * server has dropped.
 */
function toWire(value: unknown): unknown {
  if (!isObject(value) || value instanceof Date || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.some(isObject) ? value.map(toWire) : value;
  return JSON.stringify(value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
