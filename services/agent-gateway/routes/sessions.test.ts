import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { send } from '../test-support/api.ts';
import { BUNDLE_HASH, bundleWith } from '../test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, post, read, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => {
  deployment.owner.silent.notices = false;
  return deployment.closeApps();
});
afterAll(() => deployment.close());

function create(body: unknown, query = '') {
  const headers = { ...BEARER, 'content-type': 'application/json' };
  return deployment.app().inject({ method: 'POST', url: `/sessions${query}`, headers, payload: JSON.stringify(body) });
}

describe('POST /sessions', () => {
  it.each([
    ['an empty customer', { customer_id: '' }, '/customer_id'],
    ['a mode that there is not', { mode: 'off' }, '/mode'],
    ['metadata that is a list', { metadata: [] }, '/metadata'],
    ['a body that is a list', [], ''],
  ])('refuses %s and names it', async (_case, body, path) => {
    const reply = await create(body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path });
  });

  it('refuses a greeting switch that is neither true nor false', async () => {
    const reply = await create({}, '?allow_greeting=maybe');

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ path: '/allow_greeting' });
  });

  it('answers 503 when its owner neither replies nor stores anything', async () => {
    const release = deployment.owner.hold();
    try {
      const reply = await deployment.app({ waits: { silenceMs: 10, replyMs: 50 } }).inject({ method: 'POST', url: '/sessions', headers: BEARER });

      expect(reply.statusCode).toBe(503);
      expect(reply.headers['retry-after']).toBe('1');
      expect(reply.json()).toMatchObject({ code: 'not_ready' });
    } finally {
      release();
    }
  });

  it('creates a session for a new guest without parameters', async () => {
    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers: BEARER });

    expect(reply.statusCode).toBe(201);
    expect(reply.json()).toMatchObject({
      id: expect.stringMatching(/^ses_[0-9A-Z]{26}$/),
      customer_id: expect.stringMatching(/^cus_[0-9A-Z]{26}$/),
      agent_id: 'agent-1',
      title: null,
      mode: 'auto',
      status: 'ready',
      last_offset: -1,
      metadata: {},
      labels: [],
      ephemeral: false,
    });
  });

  it('accepts an empty body that is announced as JSON', async () => {
    const reply = await deployment.app().inject({ method: 'POST', url: '/sessions', headers: { ...BEARER, 'content-type': 'application/json' } });

    expect(reply.statusCode).toBe(201);
  });

  it('sends the known fields, and ignores unknown ones', async () => {
    await send(deployment.app(), 'POST', '/customers', { id: 'c 1', name: 'Ada' });
    const reply = await create({ customer_id: 'c 1', title: 'T\u0000', metadata: { plan: 'gold' }, labels: ['vip', 'vip'], mode: 'manual', colour: 'red' });

    expect(reply.statusCode).toBe(201);
    expect(reply.json()).toMatchObject({ customer_id: 'c 1', title: 'T\u0000', metadata: { plan: 'gold' }, labels: ['vip'], mode: 'manual' });
    expect(reply.json()).not.toHaveProperty('colour');
  });

  it.each([
    ['true without a word', {}, '', true],
    ['false in the body', { allow_greeting: false }, '', false],
    ['false in the query', {}, '?allow_greeting=false', false],
    ['the query over the body', { allow_greeting: false }, '?allow_greeting=true', true],
  ])('takes the greeting switch: %s', async (_case, body, query, expected) => {
    const { id } = (await create(body, query)).json();

    expect(deployment.owner.commands.find((command) => command.sessionId === id)).toMatchObject({
      type: 'session.create',
      commandId: `${id}-create`,
      allowGreeting: expected,
      bundleHash: BUNDLE_HASH,
    });
  });

  it('forwards the caller’s trace context, and begins one where none is well-formed', async () => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const app = deployment.app();
    for (const [given, expected] of [
      [traceparent, traceparent],
      ['nonsense', expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)],
    ] as const) {
      const { id } = (await app.inject({ method: 'POST', url: '/sessions', headers: { ...BEARER, traceparent: given } })).json();

      expect(deployment.owner.commands.find((command) => command.sessionId === id)?.traceparent).toEqual(expected);
    }
  });
});

describe('GET /sessions/:session_id', () => {
  it.each(['ses_unknown', 'ses.with.dots', 'x'.repeat(128), 'ses%00', 'ses%20x'])('answers 404 to %s', async (id) => {
    const reply = await deployment.app().inject({ url: `/sessions/${id}`, headers: BEARER });

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toEqual({ error: 'there is no such session', code: 'not_found' });
  });

  it('returns the current record', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    await deployment.owner.append(id, { kind: 'assistant_message', text: 'Welcome' });

    const reply = await app.inject({ url: `/sessions/${id}`, headers: BEARER });

    expect(reply.statusCode).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.json()).toMatchObject({ id, last_offset: 0 });
  });
});

describe('the ephemeral session of a run', () => {
  const get = (path: string) => deployment.app().inject({ url: path, headers: BEARER });
  const deliver = (state: string, sessionId: string, runId: string) =>
    deployment.database.query(
      `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, body, state, created_at)
       values ($1, 0, $2, $1, 'https://example.com/', 'null', 'b', 'k', 't', '{}', $3, now())`,
      [runId, sessionId, state],
    );

  async function triggered(): Promise<{ run_id: string; session_id: string; created_at: string }> {
    const payload = { callback_url: 'https://example.com/' };
    const app = deployment.app({ bundle: bundleWith({ id: 'triage' }) });
    return (await app.inject({ method: 'POST', url: '/routines/triage/trigger', headers: BEARER, payload })).json();
  }

  it('exists from the acceptance of the run, before its first step', async () => {
    const { run_id, session_id, created_at } = await triggered();

    const reply = await get(`/sessions/${session_id}`);

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual({
      id: session_id,
      customer_id: run_id.replace('run_', 'cus_'),
      agent_id: 'agent-1',
      title: null,
      mode: 'auto',
      status: 'ready',
      created_at,
      updated_at: created_at,
      last_offset: -1,
      consumption_offsets: { client: -1 },
      metadata: {},
      labels: [],
      ephemeral: true,
    });
  });

  it('can be read and polled by then: its log is empty', async () => {
    const { session_id } = await triggered();

    expect((await read(deployment.app(), session_id, 'wait_for_data=0')).json()).toEqual([]);
    expect((await read(deployment.app(), session_id, 'wait_for_data=0.05')).statusCode).toBe(504);
  });

  it('exists until the callback of a run that failed before its first step has settled', async () => {
    const { run_id, session_id } = await triggered();
    await deployment.database.query(`update runs set state = 'failed' where id = $1`, [run_id]);
    await deliver('open', session_id, run_id);

    expect((await get(`/sessions/${session_id}`)).statusCode).toBe(200);
    expect((await read(deployment.app(), session_id, 'wait_for_data=0')).statusCode).toBe(200);
    await deployment.database.query(`update deliveries set state = 'delivered' where run_id = $1`, [run_id]);
    expect((await get(`/sessions/${session_id}`)).statusCode).toBe(404);
    expect((await read(deployment.app(), session_id, 'wait_for_data=0')).statusCode).toBe(404);
  });

  it('is not found once it is deleted, though its callback is still to come', async () => {
    const { run_id, session_id } = await triggered();
    await deployment.database.query(
      `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, deleted_at) values ($1, 0, 0, 1, '{}', '{}', now(), now(), now())`,
      [session_id],
    );
    await deliver('open', session_id, run_id);

    expect((await get(`/sessions/${session_id}`)).statusCode).toBe(404);
    expect((await read(deployment.app(), session_id, 'wait_for_data=0')).statusCode).toBe(404);
  });
});

describe('DELETE /sessions/:session_id', () => {
  const del = (app: ReturnType<TestDeployment['app']>, id: string) => app.inject({ method: 'DELETE', url: `/sessions/${id}`, headers: BEARER });

  it.each(['ses_unknown', 'ses.with.dots'])('answers 404 to %s, without a command', async (id) => {
    const commands = deployment.owner.commands.length;

    expect((await del(deployment.app(), id)).statusCode).toBe(404);
    expect(deployment.owner.commands).toHaveLength(commands);
  });

  it('answers 204 once, and 404 to everything that comes after', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    await post(app, id, { kind: 'user_message', text: 'Hello', idempotency_key: 'k' });

    const reply = await del(app, id);

    expect(reply.statusCode).toBe(204);
    expect(reply.body).toBe('');
    expect((await del(app, id)).statusCode).toBe(404);
    expect((await app.inject({ url: `/sessions/${id}`, headers: BEARER })).statusCode).toBe(404);
    for (const query of ['', 'wait_for_data=0', 'wait_for_data=60', 'limit=0']) expect((await read(app, id, query)).statusCode).toBe(404);
    for (const key of ['k', 'other']) expect((await post(app, id, { kind: 'user_message', text: 'Hello', idempotency_key: key })).statusCode).toBe(404);
  });

  it('DESIGN 4: a deletion is a command: of many concurrent requests one deletes', async () => {
    const app = deployment.app();
    const id = await newSession(app);

    const replies = await Promise.all(Array.from({ length: 10 }, () => del(app, id)));

    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([204, ...Array(9).fill(404)]);
  });

  it('ends polls that wait with 404, at every gateway', async () => {
    const [one, other] = [deployment.app(), deployment.app()];
    const id = await newSession(one);
    const { begun: waiting } = await deployment.afterPages(2, () => [read(one, id, 'wait_for_data=60'), read(other, id, 'wait_for_data=60')]);

    await del(one, id);

    for (const reply of await Promise.all(waiting)) expect(reply.statusCode).toBe(404);
  });

  it('ends polls that wait when its notice was lost, at the next comparison', async () => {
    const app = deployment.app({ waits: { checkFeedsMs: 20 } });
    const id = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, id, 'wait_for_data=60'));
    deployment.owner.silent.notices = true;

    await del(app, id);

    expect((await waiting).statusCode).toBe(404);
  });

  it('is not hidden by what an earlier poll has cached', async () => {
    const app = deployment.app();
    const id = await newSession(app);
    await read(app, id, 'wait_for_data=0.001');

    await del(app, id);

    expect((await read(app, id, 'wait_for_data=60')).statusCode).toBe(404);
  });
});
