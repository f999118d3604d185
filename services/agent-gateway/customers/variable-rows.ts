import type { VariableValue } from '#shared/contracts/agent/variable.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** Stored values of variables, on a database or in a transaction. */
export class VariableRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Null: the variable has no value for the key. */
  async read(key: string, name: string): Promise<VariableValue | null> {
    const { rows } = await this.#database.query<Row>(SELECT, [key, [name]]);
    return rows[0] === undefined ? null : storedValue(rows[0]);
  }

  /** Of these variables, in the order of their names. */
  async readAll(key: string, names: readonly string[]): Promise<VariableValue[]> {
    const { rows } = await this.#database.query<Row>(SELECT, [key, names]);
    return rows.map(storedValue);
  }

  async store(key: string, name: string, data: unknown): Promise<VariableValue> {
    const { rows } = await this.#database.query<Row>(UPSERT, [key, name, JSON.stringify(data)]);
    if (rows[0] === undefined) throw new Error('the stored value was not returned');
    return storedValue(rows[0]);
  }

  /** @returns whether there was one */
  async remove(key: string, name: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(DELETE, [key, name]);
    return rowCount > 0;
  }
}

interface Row {
  name: string;
  data: unknown;
  updated_at: Date;
}

function storedValue({ name, data, updated_at }: Row): VariableValue {
  return { name, data, last_modified: updated_at.toISOString() };
}

const SELECT: NamedStatement = {
  name: 'agent-gateway-variables',
  text: 'select name, data, updated_at from variable_values where key = $1 and name = any($2::text[]) order by name',
};

const UPSERT: NamedStatement = {
  name: 'agent-gateway-store-variable',
  text: `insert into variable_values as v (key, name, data, updated_at) values ($1, $2, $3::json, date_trunc('milliseconds', now()))
    on conflict (key, name) do update set data = excluded.data, updated_at = greatest(v.updated_at, excluded.updated_at)
    returning name, data, updated_at`,
};

const DELETE: NamedStatement = { name: 'agent-gateway-delete-variable', text: 'delete from variable_values where key = $1 and name = $2' };
