import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { BEARER, newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

function patch(app: ReturnType<TestDeployment['app']>, id: string, body: unknown, headers: Record<string, string> = {}) {
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  return app.inject({ method: 'PATCH', url: `/sessions/${id}`, headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload });
}

const patchesOf = (id: string) => deployment.owner.commands.filter((command) => command.sessionId === id && command.type === 'session.patch');

describe('PATCH /sessions/:session_id', () => {
  it.each([
    ['a field that there is not', { colour: 'red' }, '/colour', 'is not a known field'],
    ['another customer', { customer_id: 'cus_2' }, '/customer_id', 'a session stays with its customer'],
    ['a field within metadata that there is not', { metadata: { plan: 'gold' } }, '/metadata/plan', 'is not a known field'],
    ['a field within labels that there is not', { labels: { add: ['vip'] } }, '/labels/add', 'is not a known field'],
    ['a reader that there is not', { consumption_offsets: { server: 1 } }, '/consumption_offsets/server', 'is not a known field'],
    ['a title that is too long', { title: 'x'.repeat(501) }, '/title', ''],
    ['a mode that there is not', { mode: 'off' }, '/mode', ''],
    ['metadata that is a list', { metadata: { set: [] } }, '/metadata/set', ''],
    ['a label that is too long', { labels: { upsert: ['x'.repeat(129)] } }, '/labels/upsert/0', ''],
    ['too many labels', { labels: { upsert: Array(101).fill('x') } }, '/labels/upsert', ''],
    ['an offset below none', { consumption_offsets: { client: -2 } }, '/consumption_offsets/client', ''],
    ['an offset between two', { consumption_offsets: { client: 0.5 } }, '/consumption_offsets/client', ''],
    ['a body that is a list', [], '', ''],
    ['no body', '', '', ''],
  ])('refuses %s and names it, without a command', async (_case, body, path, why) => {
    const app = deployment.app();
    const id = await newSession(app);

    const reply = await patch(app, id, body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path, error: expect.stringContaining(why) });
    expect(patchesOf(id)).toEqual([]);
  });

  it('refuses in the order of all routes: the key, the session, the body', async () => {
    const app = deployment.app();

    expect((await patch(app, 'ses_unknown', { colour: 'red' }, { authorization: 'Bearer wrong' })).statusCode).toBe(401);
    for (const id of ['ses_unknown', 'ses.with.dots']) {
      const reply = await patch(app, id, { colour: 'red' });
      expect([reply.statusCode, reply.json()]).toEqual([404, { error: 'there is no such session', code: 'not_found' }]);
      expect((await patch(app, id, { title: 'T' })).statusCode).toBe(404);
      expect(patchesOf(id)).toEqual([]);
    }
  });

  it('refuses with 400 what only the owner of the session can detect', async () => {
    const app = deployment.app();
    const id = await newSession(app);

    const reply = await patch(app, id, { consumption_offsets: { client: 7 } });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed' });
  });

  it('answers 200 with the record as it is now, and so does GET', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    await deployment.owner.append(id, { kind: 'assistant_message', text: 'Welcome' });

    const reply = await patch(app, id, { title: 'Warranty', mode: 'manual', metadata: { set: { plan: 'gold' } }, consumption_offsets: { client: 0 } });

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toMatchObject({
      id,
      title: 'Warranty',
      mode: 'manual',
      metadata: { plan: 'gold' },
      consumption_offsets: { client: 0 },
      last_offset: 0,
    });
    expect((await app.inject({ url: `/sessions/${id}`, headers: BEARER })).json()).toEqual(reply.json());
  });

  it('sends the named fields and no others', async () => {
    const app = deployment.app();
    const id = await newSession(app);

    await patch(app, id, {});
    await patch(app, id, { title: null, metadata: { unset: ['plan'] }, labels: { upsert: ['vip'], remove: ['open'] } });

    const none = { setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [] };
    expect(patchesOf(id)).toMatchObject([none, { ...none, title: null, unsetMetadata: ['plan'], upsertLabels: ['vip'], removeLabels: ['open'] }]);
    for (const field of ['title', 'mode', 'clientOffset']) expect(patchesOf(id)[0]).not.toHaveProperty(field);
  });

  it('DESIGN 9: a change of a session works like a post: a repeated key gets the reply of the first, and nothing is changed again', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    const first = await patch(app, id, { title: 'one' }, { 'idempotency-key': 'k' });
    await patch(app, id, { title: 'two' });

    const repeat = await patch(app, id, { title: 'one' }, { 'idempotency-key': 'k' });

    expect([repeat.statusCode, repeat.json()]).toEqual([200, first.json()]);
    expect((await app.inject({ url: `/sessions/${id}`, headers: BEARER })).json()).toMatchObject({ title: 'two' });
    expect(patchesOf(id).every(({ answerTo }) => answerTo !== null)).toBe(true);
  });

  it('refuses an invalid key', async () => {
    const app = deployment.app();
    const id = await newSession(app);

    expect((await patch(app, id, { title: 'T' }, { 'idempotency-key': 'x'.repeat(257) })).json()).toMatchObject({ path: '/idempotency-key' });
  });

  it('answers 404 once the session was deleted, also to a key that was answered before', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    await patch(app, id, { title: 'T' }, { 'idempotency-key': 'k' });
    await app.inject({ method: 'DELETE', url: `/sessions/${id}`, headers: BEARER });

    for (const key of ['k', 'other']) expect((await patch(app, id, { title: 'T' }, { 'idempotency-key': key })).statusCode).toBe(404);
  });

  it('answers 503 without a reply of its owner', async () => {
    const app = deployment.app({ waits: { silenceMs: 10, replyMs: 50 } });
    const id = await newSession(app);
    const release = deployment.owner.hold();
    try {
      const reply = await patch(app, id, { title: 'T' });

      expect(reply.statusCode).toBe(503);
      expect(reply.headers['retry-after']).toBe('1');
      expect(reply.json()).toMatchObject({ code: 'not_ready' });
    } finally {
      release();
    }
  });
});
