import { createHash } from 'node:crypto';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database, NamedStatement, Queryable } from '#shared/storage/database.ts';

/** A reply of a write. */
export interface WriteReply {
  status: number;
  /** Null: none. */
  body: object | null;
}

/** A write of plain rows, as its request names it. */
export interface KeyedWrite {
  /** Method and address: a key is of one of them. */
  operation: string;
  /** Null: the caller gave none, and each request is a write of its own. */
  key: string | null;
}

/**
 * Executes writes of plain rows once per idempotency key. The reply is stored by the transaction of the write, so both are there or neither. A refused write
 * stores nothing: the key may be used again.
 */
export class FirstReplies {
  readonly #database: Pick<Database, 'transaction'>;

  constructor(database: Pick<Database, 'transaction'>) {
    this.#database = database;
  }

  /**
   * @param write awaits nothing but the given handle, which is a transaction
   * @returns the first reply to the key; its status is 200 in place of 201 when the request repeats
   */
  async once({ operation, key }: KeyedWrite, write: (handle: Queryable) => Promise<WriteReply>): Promise<WriteReply> {
    if (key === null) return this.#database.transaction(write);
    const id = createHash('sha256').update(`${operation}\n${key}`, 'utf8').digest('hex');
    return this.#database.transaction(async (handle) => {
      // Waits for a transaction that has inserted the same id: the reply is there afterwards, or the id is free.
      const { rowCount } = await handle.query(INSERT, [id]);
      if (rowCount === 0) return repeated(handle, id);
      const reply = await write(handle);
      await handle.query(UPDATE, [id, reply.status, reply.body === null ? null : JSON.stringify(reply.body)]);
      return reply;
    });
  }
}

async function repeated(handle: Queryable, id: string): Promise<WriteReply> {
  const { rows } = await handle.query<WriteReply>(SELECT, [id]);
  const [first] = rows;
  // A sweep has deleted it since the insert.
  if (first === undefined) throw new SwitchyardError('service.no_answer', 'the first reply to this idempotency key has just expired; send the request again');
  return { status: first.status === 201 ? 200 : first.status, body: first.body };
}

const INSERT: NamedStatement = { name: 'agent-gateway-first-reply', text: 'insert into first_replies (id) values ($1) on conflict (id) do nothing' };
const UPDATE: NamedStatement = { name: 'agent-gateway-store-reply', text: 'update first_replies set status = $2, body = $3::json where id = $1' };
const SELECT: NamedStatement = { name: 'agent-gateway-stored-reply', text: 'select status, body from first_replies where id = $1' };
