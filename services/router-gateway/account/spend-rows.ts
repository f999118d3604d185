import type { KeySpend } from '#shared/credit/spend-windows.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** What keys have spent, of the file and of rows. */
export class SpendRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** By id of the key; keys without a call are missing. */
  async of(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeySpend>> {
    if (keyIds.length === 0) return new Map();
    const { rows } = await this.#database.query<KeySpend & { id: string }>(SELECT_SPEND, [keyIds]);
    return new Map(rows.map(({ id, ...spend }) => [id, spend]));
  }

  /** Of all keys together, deleted ones included, in billionths of a US dollar. */
  async totalNano(): Promise<number> {
    const { rows } = await this.#database.query<{ spent: number }>(SELECT_TOTAL, []);
    return rows[0]?.spent ?? 0;
  }
}

// float8: exact up to 9 million USD, and never refused.
const SELECT_SPEND: NamedStatement = {
  name: 'router-gateway-key-spend',
  text: `select key_id as id, total_nano::float8 as "totalNano", day::text as day, day_nano::float8 as "dayNano", week::text as week, week_nano::float8 as "weekNano",
      month::text as month, month_nano::float8 as "monthNano", reserved_nano::float8 as "reservedNano"
    from key_spend where key_id = any($1::text[])`,
};

const SELECT_TOTAL: NamedStatement = { name: 'router-gateway-total-spend', text: 'select coalesce(sum(total_nano), 0)::float8 as spent from key_spend' };
