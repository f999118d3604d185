import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { CustomerStore, StoredCustomer } from '../port/customer-store.ts';

/** Rows that gateways write (services/agent-gateway/customers). */
export function customerRows(database: Queryable): CustomerStore {
  return {
    async read(customerId, names) {
      const { rows } = await database.query<Row>(READ, [customerId, names]);
      const { customer, found } = rows[0] ?? { customer: null, found: null };
      return { name: customer?.name ?? null, tags: customer?.tags ?? [], values: found ?? [] };
    },
  };
}

interface Row {
  customer: Pick<StoredCustomer, 'name' | 'tags'> | null;
  found: StoredCustomer['values'] | null;
}

const READ: NamedStatement = {
  name: 'load-customer',
  text: `with customer as (select name, tags from customers where id = $1),
    keys as (select 'DEFAULT' as key union all select $1 union all select 'tag:' || tag from customer, unnest(tags) as tag)
    select (select json_build_object('name', name, 'tags', tags) from customer) as customer,
      (select json_agg(json_build_object('key', v.key, 'name', v.name, 'data', v.data,
        'updatedAtMs', round(extract(epoch from v.updated_at) * 1000)))
        from variable_values as v where v.key in (select key from keys) and v.name = any($2::text[])) as found`,
};
