import { describe, expect, it } from 'vitest';
import { send } from './api.ts';
import { newSession, type TestDeployment } from './test-deployment.ts';

let numbers = 0;

/** An id that no other case uses. */
function unique(): string {
  numbers += 1;
  return `customer-${numbers}`;
}

/** Cases of customers' rows, for any driver of the database. */
export function customerCases(deployment: () => TestDeployment): void {
  const app = () => deployment().app();
  const rowsOf = async (id: string) => (await deployment().database.query('select 1 from customers where id = $1', [id])).rowCount;

  describe('POST /customers', () => {
    it('creates a customer under a new id, with the defaults of all fields', async () => {
      const reply = await send(app(), 'POST', '/customers', { name: 'Ada', colour: 'red' });

      expect(reply.statusCode).toBe(201);
      expect(reply.json()).toEqual({
        id: expect.stringMatching(/^cus_[0-9A-Z]{26}$/),
        name: 'Ada',
        external_id: null,
        tags: [],
        metadata: {},
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        updated_at: reply.json().created_at,
        ephemeral: false,
      });
    });

    it('answers 200 with the stored record when the same request is sent again under the same id, and 409 when another is', async () => {
      const id = unique();
      const body = { id, name: 'Zoë 😀', external_id: 'crm/7', tags: ['vip', 'eu', 'vip'], metadata: { a: ['\u0000', '\ud800', -0], b: { c: null } } };
      const first = await send(app(), 'POST', '/customers', body);
      expect([first.statusCode, first.json().tags]).toEqual([201, ['vip', 'eu']]);

      const same = await send(app(), 'POST', '/customers', body);
      expect([same.statusCode, same.json()]).toEqual([200, first.json()]);
      for (const change of [{ name: 'Zoe' }, { external_id: null }, { tags: ['vip'] }, { metadata: {} }]) {
        const other = await send(app(), 'POST', '/customers', { ...body, ...change });
        expect([other.statusCode, other.json()]).toEqual([409, { error: 'there is another customer with this id', code: 'conflict' }]);
      }
      expect((await send(app(), 'GET', `/customers/${id}`)).json()).toEqual(first.json());
    });

    it('creates one customer of many requests at once with one id', async () => {
      const id = unique();

      const replies = await Promise.all(Array.from({ length: 10 }, () => send(app(), 'POST', '/customers', { id, name: 'Ada' })));

      expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([...Array(9).fill(200), 201]);
    });
  });

  describe('an idempotency key of a write of customers', () => {
    it('DESIGN 9: creates one customer of many requests at once, and all get its record', async () => {
      const replies = await Promise.all(Array.from({ length: 10 }, () => send(app(), 'POST', '/customers', { name: 'Ada' }, 'at once')));

      expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([...Array(9).fill(200), 201]);
      expect(new Set(replies.map(({ body }) => JSON.stringify(JSON.parse(body)))).size).toBe(1);
    });

    it('DESIGN 9: repeats the first reply of a change, whatever has changed since and whatever the repeat contains', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });
      const first = await send(app(), 'PATCH', `/customers/${id}`, { name: 'First' }, 'k');
      await send(app(), 'PATCH', `/customers/${id}`, { name: 'Second' });

      const repeat = await send(app(), 'PATCH', `/customers/${id}`, { name: 'Third' }, 'k');

      expect([repeat.statusCode, repeat.json()]).toEqual([200, first.json()]);
      expect((await send(app(), 'GET', `/customers/${id}`)).json()).toMatchObject({ name: 'Second' });
    });

    it('repeats the reply of a deletion', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });

      expect((await send(app(), 'DELETE', `/customers/${id}`, undefined, 'k')).statusCode).toBe(204);
      expect((await send(app(), 'DELETE', `/customers/${id}`, undefined, 'k')).statusCode).toBe(204);
      expect((await send(app(), 'DELETE', `/customers/${id}`, undefined, 'other')).statusCode).toBe(404);
    });

    it('is of one operation: another one with the same key is executed', async () => {
      const [one, other] = [unique(), unique()];
      for (const id of [one, other]) expect((await send(app(), 'POST', '/customers', { id, name: 'Ada' })).statusCode).toBe(201);

      for (const id of [one, other])
        expect((await send(app(), 'PATCH', `/customers/${id}`, { name: 'Bea' }, 'shared')).json()).toMatchObject({ id, name: 'Bea' });
    });

    it('may be used again after a refusal', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });
      expect((await send(app(), 'POST', '/customers', { id, name: 'Bea' }, 'refused')).statusCode).toBe(409);

      const reply = await send(app(), 'POST', '/customers', { id: unique(), name: 'Bea' }, 'refused');

      expect(reply.statusCode).toBe(201);
    });

    it('DESIGN 9: is stored with its write, or neither is', async () => {
      const { database } = deployment();
      const id = unique();
      const failing: typeof database = {
        ...database,
        query: (statement, parameters) => database.query(statement, parameters),
        close: () => database.close(),
        transaction: (work, options) =>
          database.transaction(
            (handle) =>
              work({
                query: (statement, parameters) => {
                  if (typeof statement !== 'string' && statement.name === 'agent-gateway-store-reply') throw new Error('the reply can not be stored');
                  return handle.query(statement, parameters);
                },
              }),
            options,
          ),
      };

      expect((await send(deployment().app({ database: failing }), 'POST', '/customers', { id, name: 'Ada' }, 'torn')).statusCode).toBe(500);
      expect(await rowsOf(id)).toBe(0);
      expect((await send(app(), 'POST', '/customers', { id, name: 'Ada' }, 'torn')).statusCode).toBe(201);
    });
  });

  describe('PATCH /customers/:customer_id', () => {
    it('changes what is given, and applies removals last', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada', external_id: 'crm/7', tags: ['eu', 'old'], metadata: { plan: 'gold', region: 'eu' } });

      const patch = { tags: { add: ['vip', 'gone'], remove: ['old', 'gone'] }, metadata: { set: { plan: 'silver', x: 1 }, unset: ['region', 'x'] } };
      const reply = await send(app(), 'PATCH', `/customers/${id}`, patch);

      expect(reply.statusCode).toBe(200);
      expect(reply.json()).toMatchObject({ id, name: 'Ada', external_id: 'crm/7', tags: ['eu', 'vip'], metadata: { plan: 'silver' } });
      expect(reply.json().metadata).toEqual({ plan: 'silver' });
      const cleared = await send(app(), 'PATCH', `/customers/${id}`, { external_id: null });
      expect(cleared.json()).toMatchObject({ external_id: null, tags: ['eu', 'vip'] });
    });

    it('DESIGN 9: loses no change of concurrent requests', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });
      const tags = Array.from({ length: 20 }, (_, index) => `tag ${index}`);

      await Promise.all(tags.map((tag) => send(app(), 'PATCH', `/customers/${id}`, { tags: { add: [tag] } })));

      expect((await send(app(), 'GET', `/customers/${id}`)).json().tags.sort()).toEqual([...tags].sort());
    });
  });

  describe('GET /customers', () => {
    /** Three at one instant, and one before. */
    async function listed(externalId: string): Promise<string[]> {
      const ids = [unique(), unique(), unique(), unique()].sort();
      for (const id of ids) await send(app(), 'POST', '/customers', { id, name: 'Ada', external_id: externalId });
      await deployment().database.query('update customers set created_at = $2 where id = any($1::text[])', [ids.slice(1), '2030-01-01T00:00:00Z']);
      return ids;
    }

    async function pages(query: string): Promise<string[][]> {
      const found: string[][] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const reply = await send(app(), 'GET', `/customers?${query}${cursor === '' ? '' : `&cursor=${cursor}`}`);
        expect(reply.statusCode).toBe(200);
        const { items, has_more: hasMore, next_cursor: next } = reply.json();
        expect(hasMore).toBe(next !== null);
        // A cursor that does not advance would never end.
        expect(found.length).toBeLessThan(300);
        found.push(items.map(({ id }: { id: string }) => id));
        cursor = next;
      }
      return found;
    }

    it('returns each once, newest first or oldest first, also those of one instant', async () => {
      const [oldest, one, two, three] = await listed('crm/pages');

      expect(await pages('external_id=crm/pages&limit=2')).toEqual([
        [three, two],
        [one, oldest],
      ]);
      expect(await pages('external_id=crm/pages&limit=3&sort=asc')).toEqual([[oldest, one, two], [three]]);
      expect(await pages('external_id=crm/pages')).toEqual([[three, two, one, oldest]]);
      expect((await pages('limit=200')).flat().slice(0, 3)).toEqual([three, two, one]);
    });

    it('skips none and repeats none when the last of a page is deleted meanwhile', async () => {
      const [oldest, one, two, three] = await listed('crm/deleted');
      const { items, next_cursor: cursor } = (await send(app(), 'GET', '/customers?external_id=crm/deleted&limit=2')).json();
      expect(items.map(({ id }: { id: string }) => id)).toEqual([three, two]);

      await send(app(), 'DELETE', `/customers/${two}`);

      const next = (await send(app(), 'GET', `/customers?external_id=crm/deleted&limit=2&cursor=${cursor}`)).json();
      expect(next).toMatchObject({ items: [{ id: one }, { id: oldest }], has_more: false, next_cursor: null });
    });
  });

  describe('DELETE /customers/:customer_id', () => {
    const withSession = async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });
      const sessions = [await newSession(app()), await newSession(app())];
      await deployment().database.query('update sessions set customer_id = $2 where id = any($1::text[])', [sessions, id]);
      return { id, sessions };
    };

    it('answers 204 once, and 404 from then on', async () => {
      const id = unique();
      await send(app(), 'POST', '/customers', { id, name: 'Ada' });

      expect((await send(app(), 'DELETE', `/customers/${id}`)).statusCode).toBe(204);
      for (const method of ['GET', 'PATCH', 'DELETE'] as const)
        expect((await send(app(), method, `/customers/${id}`, method === 'PATCH' ? {} : undefined)).statusCode).toBe(404);
      expect((await send(app(), 'POST', '/customers', { id, name: 'Bea' })).statusCode).toBe(201);
    });

    it('answers 409 while there are sessions, and leaves them and the customer', async () => {
      const { id, sessions } = await withSession();

      for (const query of ['', '?cascade=false']) {
        const reply = await send(app(), 'DELETE', `/customers/${id}${query}`);
        expect([reply.statusCode, reply.json()]).toMatchObject([409, { code: 'conflict' }]);
      }
      expect((await send(app(), 'GET', `/customers/${id}`)).statusCode).toBe(200);
      for (const session of sessions) {
        expect((await send(app(), 'GET', `/sessions/${session}`)).statusCode).toBe(200);
        await send(app(), 'DELETE', `/sessions/${session}`);
      }
      expect((await send(app(), 'DELETE', `/customers/${id}`)).statusCode).toBe(204);
    });

    it('deletes the sessions with it on request, each by a command to its owner', async () => {
      const { id, sessions } = await withSession();

      const replies = await Promise.all([1, 2].map(() => send(app(), 'DELETE', `/customers/${id}?cascade=true`)));

      expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([204, 404]);
      for (const session of sessions) {
        expect((await send(app(), 'GET', `/sessions/${session}`)).statusCode).toBe(404);
        expect(deployment().owner.commands).toContainEqual(expect.objectContaining({ type: 'session.delete', sessionId: session }));
      }
    });
  });
}
