import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

const app = () => deployment.app();

/** A gateway whose owner has the command only once `meanwhile` is done. */
function appWith(meanwhile: () => Promise<unknown>) {
  const { bus } = deployment;
  let once: Promise<unknown> | null = null;
  const commands: typeof bus.commands = {
    ...bus.commands,
    append: async (...sent: Parameters<typeof bus.commands.append>) => {
      once ??= meanwhile();
      await once;
      return bus.commands.append(...sent);
    },
  };
  return deployment.app({ bus: { ...bus, commands } });
}

describe('the customer of a new session', () => {
  it.each([
    ['one that does not exist', 'unknown', 'customer_id must be the id of a customer: POST /customers registers one'],
    ['one of a run, which is deleted with it', 'of-a-run', 'customer_id must not be the customer of a run'],
  ])('is not accepted: %s', async (_case, id, error) => {
    await deployment.database.query(
      `insert into customers (id, name, ephemeral, created_at, updated_at) values ('of-a-run', 'Guest', true, now(), now()) on conflict (id) do nothing`,
    );
    const commands = deployment.owner.commands.length;

    const reply = await send(app(), 'POST', '/sessions', { customer_id: id });

    expect([reply.statusCode, reply.json()]).toEqual([400, { error, code: 'validation_failed', path: '/customer_id' }]);
    expect(deployment.owner.commands).toHaveLength(commands);
  });

  it('is the given one', async () => {
    await send(app(), 'POST', '/customers', { id: 'ada.b', name: 'Ada' });

    expect((await send(app(), 'POST', '/sessions', { customer_id: 'ada.b' })).json()).toMatchObject({ customer_id: 'ada.b' });
  });

  it('is a guest when none is given: a customer like any other', async () => {
    const { id, customer_id: guest } = (await send(app(), 'POST', '/sessions')).json();

    expect((await send(app(), 'GET', `/customers/${guest}`)).json()).toMatchObject({ id: guest, name: 'Guest', ephemeral: false });
    expect((await send(app(), 'PATCH', `/customers/${guest}`, { name: 'Ada' })).json()).toMatchObject({ name: 'Ada' });
    expect((await send(app(), 'DELETE', `/customers/${guest}`)).statusCode).toBe(409);
    expect((await send(app(), 'DELETE', `/customers/${guest}?cascade=true`)).statusCode).toBe(204);
    expect((await send(app(), 'GET', `/sessions/${id}`)).statusCode).toBe(404);
  });

  it('stays: a change of it is refused', async () => {
    const { id, customer_id: guest } = (await send(app(), 'POST', '/sessions')).json();
    await send(app(), 'POST', '/customers', { id: 'other', name: 'Bea' });

    const reply = await send(app(), 'PATCH', `/sessions/${id}`, { customer_id: 'other' });

    expect([reply.statusCode, reply.json()]).toMatchObject([400, { path: '/customer_id' }]);
    expect((await send(app(), 'GET', `/sessions/${id}`)).json()).toMatchObject({ customer_id: guest });
  });
});

describe('a session whose customer is deleted while it is created', () => {
  const sessionsOf = async (customer: string) =>
    (await deployment.database.query('select 1 from sessions where customer_id = $1 and deleted_at is null', [customer])).rowCount;

  it('is deleted again, and refused as one of a customer that does not exist', async () => {
    await send(app(), 'POST', '/customers', { id: 'brief', name: 'Ada' });
    let deletion = 0;
    const on = appWith(async () => {
      deletion = (await send(app(), 'DELETE', '/customers/brief')).statusCode;
    });

    const reply = await send(on, 'POST', '/sessions', { customer_id: 'brief' });

    expect(deletion).toBe(204);
    expect([reply.statusCode, reply.json()]).toMatchObject([400, { path: '/customer_id' }]);
    expect(await sessionsOf('brief')).toBe(0);
  });

  it('has its guest again', async () => {
    let guest = '';
    const on = appWith(async () => {
      const { rows } = await deployment.database.query<{ id: string }>(`select id from customers order by created_at desc, id desc limit 1`);
      guest = rows[0]?.id ?? '';
      expect((await send(app(), 'DELETE', `/customers/${guest}`)).statusCode).toBe(204);
    });

    const reply = await send(on, 'POST', '/sessions');

    expect([reply.statusCode, reply.json()]).toMatchObject([201, { customer_id: guest }]);
    expect((await send(app(), 'GET', `/customers/${guest}`)).json()).toMatchObject({ name: 'Guest' });
    expect((await send(app(), 'DELETE', `/customers/${guest}`)).statusCode).toBe(409);
  });
});

describe('an idempotency key', () => {
  it('DESIGN 9: creates one session with one guest, of many requests at once', async () => {
    const before = (await deployment.database.query('select 1 from customers')).rowCount;

    const replies = await Promise.all(Array.from({ length: 10 }, () => send(app(), 'POST', '/sessions', { title: 'T' }, 'create')));

    expect(new Set(replies.map(({ body }) => body)).size).toBe(1);
    expect(replies[0]?.json()).toMatchObject({ id: expect.stringMatching(/^ses_[0-9A-Z]{26}$/), title: 'T' });
    expect((await deployment.database.query('select 1 from customers')).rowCount).toBe(before + 1);
    const repeat = await send(app(), 'POST', '/sessions', { title: 'another' }, 'create');
    expect([repeat.statusCode, repeat.body]).toEqual([200, replies[0]?.body]);
    expect((await send(app(), 'POST', '/sessions', {}, 'another key')).statusCode).toBe(201);
  });

  it('DESIGN 9: repeats the reply for a session that is deleted since, and makes its deleted guest no second time', async () => {
    const created = await send(app(), 'POST', '/sessions', { title: 'T' }, 'for a while');
    const { id, customer_id: guest } = created.json();
    expect((await send(app(), 'DELETE', `/customers/${guest}?cascade=true`)).statusCode).toBe(204);

    const repeat = await send(app(), 'POST', '/sessions', { title: 'T' }, 'for a while');

    expect([repeat.statusCode, repeat.body]).toEqual([200, created.body]);
    expect((await send(app(), 'GET', `/sessions/${id}`)).statusCode).toBe(404);
    expect((await send(app(), 'GET', `/customers/${guest}`)).statusCode).toBe(404);
  });

  it('makes the guest of a session no second time that is deleted while the creation is repeated', async () => {
    const created = await send(app(), 'POST', '/sessions', { title: 'T' }, 'deleted meanwhile');
    const { customer_id: guest } = created.json();
    const on = appWith(async () => {
      expect((await send(app(), 'DELETE', `/customers/${guest}?cascade=true`)).statusCode).toBe(204);
    });

    const repeat = await send(on, 'POST', '/sessions', { title: 'T' }, 'deleted meanwhile');

    expect([repeat.statusCode, repeat.body]).toEqual([200, created.body]);
    expect((await send(app(), 'GET', `/customers/${guest}`)).statusCode).toBe(404);
  });

  it('makes the guest no second time of a session that another request with the key creates, and that is deleted with it, before', async () => {
    const { database } = deployment;
    let first = '';
    const createAndDelete = async () => {
      const created = await send(app(), 'POST', '/sessions', { title: 'T' }, 'at once');
      first = created.body;
      expect((await send(app(), 'DELETE', `/customers/${created.json().customer_id}?cascade=true`)).statusCode).toBe(204);
    };
    const query: typeof database.query = async (statement, parameters) => {
      if (typeof statement !== 'string' && statement.text.startsWith('insert into customers')) await createAndDelete();
      return database.query(statement, parameters);
    };
    const behind = deployment.app({ database: { query, transaction: (work) => database.transaction(work), close: async () => {} } });

    const repeat = await send(behind, 'POST', '/sessions', { title: 'T' }, 'at once');

    expect([repeat.statusCode, repeat.body]).toEqual([200, first]);
    expect((await send(app(), 'GET', `/customers/${repeat.json().customer_id}`)).statusCode).toBe(404);
  });

  it('DESIGN 9: repeats the reply of a deletion, and of none that did not happen', async () => {
    const { id } = (await send(app(), 'POST', '/sessions')).json();

    expect((await send(app(), 'DELETE', `/sessions/${id}`, undefined, 'delete')).statusCode).toBe(204);
    expect((await send(app(), 'DELETE', `/sessions/${id}`, undefined, 'delete')).statusCode).toBe(204);
    expect((await send(app(), 'DELETE', `/sessions/${id}`, undefined, 'another')).statusCode).toBe(404);
    expect((await send(app(), 'DELETE', '/sessions/ses_unknown', undefined, 'delete')).statusCode).toBe(404);
  });
});
