import { expect } from 'vitest';
import { z } from 'zod';
import type { RetryingClient } from '../helpers/retrying-client.ts';
import { VARIABLES } from './agent-files.ts';

/** A customer as all acknowledged writes leave it. */
export interface WrittenCustomer {
  id: string;
  /** Null: it was deleted last. */
  record: { name: string; tags: string[]; metadata: Record<string, unknown> } | null;
  /** Values of variables, by name. */
  values: ReadonlyMap<string, unknown>;
  /** The value of a tag that no other customer has. */
  ofTag: { key: string; data: unknown };
}

const CHANGES = 4;
const [PLAN, VISITS] = VARIABLES;
const valueList = z.object({ items: z.array(z.looseObject({ name: z.string(), data: z.unknown() })) });

let customers = 0;

/** Registers a customer, changes it and its values one after the other, and deletes every third. @throws when a write is refused */
export async function writeCustomer(client: RetryingClient, begin: () => void): Promise<WrittenCustomer> {
  customers += 1;
  const number = customers;
  const id = `customer-${process.pid}-${number}`;
  const of = `/customers/${id}`;
  let keys = 0;
  const write = async (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, fields?: object) => {
    begin();
    keys += 1;
    const { status, body } = await client.write(method, path, `${id}-${keys}`, fields);
    if (status < 200 || status > 299) throw new Error(`${method} ${path} was answered ${status}: ${JSON.stringify(body)}`);
  };
  await write('POST', '/customers', { id, name: 'first', tags: ['new'], metadata: { changes: 0 } });
  for (let change = 1; change <= CHANGES; change += 1) {
    await write('PATCH', of, { name: `name ${change}`, tags: { add: [`t${change}`] }, metadata: { set: { changes: change, [`c${change}`]: true } } });
    await write('PUT', `${of}/variables/${VISITS}`, { data: change });
  }
  await write('PUT', `${of}/variables/${PLAN}`, { data: 'gold' });
  await write('PATCH', of, { tags: { remove: ['new'] }, metadata: { unset: ['c1'] } });
  const ofTag = { key: `tag:${id}`, data: `plan ${number}` };
  await write('PUT', `/variables/${PLAN}/values/${ofTag.key}`, { data: ofTag.data });
  if (number % 2 === 0) await write('DELETE', `${of}/variables/${PLAN}`);
  if (number % 3 === 0) {
    await write('DELETE', of);
    return { id, record: null, values: new Map(), ofTag };
  }
  const tags = Array.from({ length: CHANGES }, (_, index) => `t${index + 1}`);
  const flags = Object.fromEntries(tags.slice(1).map((tag) => [tag.replace('t', 'c'), true]));
  const values = new Map<string, unknown>(
    number % 2 === 0
      ? [[VISITS, CHANGES]]
      : [
          [PLAN, 'gold'],
          [VISITS, CHANGES],
        ],
  );
  return { id, record: { name: `name ${CHANGES}`, tags, metadata: { changes: CHANGES, ...flags } }, values, ofTag };
}

/** What was acknowledged stands, and what was deleted stays away. */
export async function checkCustomer(client: RetryingClient, { id, record, values, ofTag }: WrittenCustomer): Promise<void> {
  const { status, body } = await client.get(`/customers/${id}`);
  if (record === null) expect(status, `${id} was deleted`).toBe(404);
  else expect([status, body], id).toMatchObject([200, { id, ...record }]);
  const listed = await client.get(`/customers/${id}/variables`);
  if (record === null) expect(listed.status, `values of ${id}`).toBe(404);
  else expect(new Map(valueList.parse(listed.body).items.map(({ name, data }) => [name, data])), `values of ${id}`).toEqual(values);
  expect((await client.get(`/variables/${PLAN}/values/${ofTag.key}`)).body, `the value of ${ofTag.key}`).toMatchObject({ data: ofTag.data });
}
