import type { CustomerRecord } from '#shared/contracts/agent/customer.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { type PagePosition, startOf } from '../page-cursor.ts';

export type NewCustomer = Pick<CustomerRecord, 'id' | 'name' | 'external_id' | 'tags' | 'metadata'>;

interface Listed {
  /** Null does not filter. */
  externalId: string | null;
  sort: 'asc' | 'desc';
  /** Null: from the first. */
  after: PagePosition | null;
  limit: number;
}

/** The customers table, on a database or in a transaction. */
export class CustomerRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** @returns null: the id is taken */
  async insert({ id, name, external_id, tags, metadata }: NewCustomer): Promise<CustomerRecord | null> {
    return this.#one(INSERT, [id, name, external_id, tags, JSON.stringify(metadata)]);
  }

  /** As `insert`, unless a session has processed the command. The check and the insert see one state of the database. */
  async insertUnlessProcessed({ id, name, external_id, tags, metadata }: NewCustomer, sessionId: string, commandId: string): Promise<void> {
    await this.#database.query(INSERT_UNLESS_PROCESSED, [id, name, external_id, tags, JSON.stringify(metadata), sessionId, commandId]);
  }

  /** Null: no such customer. */
  async byId(id: string): Promise<CustomerRecord | null> {
    return this.#one(SELECT, [id]);
  }

  /** As `byId`; no other transaction changes it before this one ends. */
  async locked(id: string): Promise<CustomerRecord | null> {
    return this.#one(SELECT_LOCKED, [id]);
  }

  /** As `byId`; it is not deleted before this transaction ends. */
  async shared(id: string): Promise<CustomerRecord | null> {
    return this.#one(SELECT_SHARED, [id]);
  }

  /** @returns null: no such customer */
  async change({ id, name, external_id, tags, metadata }: NewCustomer): Promise<CustomerRecord | null> {
    return this.#one(UPDATE, [id, name, external_id, tags, JSON.stringify(metadata)]);
  }

  /** With its values of variables, unless it has sessions; in a transaction. @returns whether it was deleted */
  async remove(id: string): Promise<boolean> {
    // A statement of its own: sessions that were stored until the row was locked are seen by the next one.
    await this.#database.query(SELECT_LOCKED, [id]);
    const { rowCount } = await this.#database.query(DELETE, [id]);
    // A statement of its own: values that were stored until the row was deleted are seen.
    if (rowCount > 0) await this.#database.query(DELETE_VALUES, [id]);
    return rowCount > 0;
  }

  /** One more than `limit` when there are more, by creation and id. */
  async list({ externalId, sort, after, limit }: Listed): Promise<CustomerRecord[]> {
    const statement = (externalId === null ? ALL : BY_EXTERNAL_ID)[sort];
    const { rows } = await this.#database.query<Row>(statement, [...startOf(sort, after), limit + 1, ...(externalId === null ? [] : [externalId])]);
    return rows.map(recordOf);
  }

  /** The oldest of its sessions that are not deleted. */
  async sessionsOf(id: string, limit: number): Promise<string[]> {
    const { rows } = await this.#database.query<{ id: string }>(SELECT_SESSIONS, [id, limit]);
    return rows.map((row) => row.id);
  }

  async #one(statement: NamedStatement, parameters: readonly unknown[]): Promise<CustomerRecord | null> {
    const { rows } = await this.#database.query<Row>(statement, parameters);
    return rows[0] === undefined ? null : recordOf(rows[0]);
  }
}

interface Row extends Omit<CustomerRecord, 'created_at' | 'updated_at'> {
  created_at: Date;
  updated_at: Date;
}

function recordOf({ id, name, external_id, tags, metadata, created_at, updated_at, ephemeral }: Row): CustomerRecord {
  return { id, name, external_id, tags, metadata, created_at: created_at.toISOString(), updated_at: updated_at.toISOString(), ephemeral };
}

const RECORD = 'id, name, external_id, tags, metadata, created_at, updated_at, ephemeral';
const NOW = `date_trunc('milliseconds', now())`;

const INSERT: NamedStatement = {
  name: 'agent-gateway-insert-customer',
  text: `insert into customers (id, name, external_id, tags, metadata, created_at, updated_at)
    values ($1, $2, $3, $4::text[], $5::json, ${NOW}, ${NOW}) on conflict (id) do nothing returning ${RECORD}`,
};

const INSERT_UNLESS_PROCESSED: NamedStatement = {
  name: 'agent-gateway-insert-customer-unless-processed',
  text: `insert into customers (id, name, external_id, tags, metadata, created_at, updated_at)
    select $1::text, $2::text, $3::text, $4::text[], $5::json, ${NOW}, ${NOW} where not exists (select 1 from seen where session_id = $6 and command_id = $7)
    on conflict (id) do nothing`,
};

const SELECT: NamedStatement = { name: 'agent-gateway-customer', text: `select ${RECORD} from customers where id = $1` };
const SELECT_LOCKED: NamedStatement = { name: 'agent-gateway-locked-customer', text: `select ${RECORD} from customers where id = $1 for update` };

const SELECT_SHARED: NamedStatement = { name: 'agent-gateway-shared-customer', text: `select ${RECORD} from customers where id = $1 for key share` };

const UPDATE: NamedStatement = {
  name: 'agent-gateway-change-customer',
  text: `update customers set name = $2, external_id = $3, tags = $4::text[], metadata = $5::json, updated_at = greatest(updated_at, ${NOW})
    where id = $1 returning ${RECORD}`,
};

const DELETE: NamedStatement = {
  name: 'agent-gateway-delete-customer',
  text: `delete from customers where id = $1
    and not exists (select 1 from sessions where sessions.customer_id = $1 and sessions.deleted_at is null)`,
};

const DELETE_VALUES: NamedStatement = { name: 'agent-gateway-delete-values', text: 'delete from variable_values where key = $1' };

const SELECT_SESSIONS: NamedStatement = {
  name: 'agent-gateway-customer-sessions',
  text: 'select id from sessions where customer_id = $1 and deleted_at is null order by created_at, id limit $2',
};

const ALL = listed('customers', '');
// Bounds of the index, and part of the order: with equality, the planner may walk the index over all customers.
const BY_EXTERNAL_ID = listed('customers-by-external-id', 'external_id, ');

function listed(name: string, key: 'external_id, ' | ''): Record<'asc' | 'desc', NamedStatement> {
  const given = key === '' ? '' : '$4, ';
  const page = (sort: 'asc' | 'desc', beyond: '<' | '>') => ({
    name: `agent-gateway-${name}-${sort}`,
    text: `select ${RECORD} from customers where (${key}created_at, id) ${beyond} (${given}$1::timestamptz, $2::text)
        ${key === '' ? '' : `and external_id ${beyond === '<' ? '>=' : '<='} $4`}
      order by ${key === '' ? '' : `external_id ${sort}, `}created_at ${sort}, id ${sort} limit $3::int`,
  });
  return { asc: page('asc', '>'), desc: page('desc', '<') };
}
