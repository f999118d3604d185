import type { LightMyRequestResponse } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { partitionOf } from '#bus/partition.ts';
import { systemClock } from '#shared/clock.ts';
import { checkOutboundUrl } from '#shared/http/outbound-guard.ts';
import type { Database } from '#shared/storage/database.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { BUNDLE_HASH, bundleWith } from '../test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(async () => {
  await deployment.closeApps();
  await deployment.database.query('delete from runs');
});

const BUNDLE = bundleWith(
  {
    id: 'triage',
    input_schema: { type: 'object', required: ['claim'], properties: { claim: { type: 'string' }, parts: { type: 'array', items: { type: 'integer' } } } },
    callback_url_allowlist: ['.example.com'],
    timeout_seconds: 7.5,
  },
  { id: 'anything' },
  { id: 'patient', timeout_seconds: 86_400 },
  { id: 'switched-off', enabled: false },
  { id: 'talk', kind: 'conversational', conditions: ['always'], steps: [{ kind: 'chat', id: 'a', chat_state: 'Hello' }] },
);
const DONE = 'https://hooks.example.com/done';
const TRIGGER = { callback_url: DONE, input: { claim: 'broken' } };

function app(changes: Parameters<TestDeployment['app']>[0] = {}) {
  const rules = { allowHosts: new Set<string>() };
  return deployment.app({ bundle: BUNDLE, checkCallbackUrl: (url, list) => void checkOutboundUrl(url, rules, list), ...changes });
}

async function trigger(routineId: string, body: unknown, { on = app(), headers = {} as Record<string, string> } = {}): Promise<LightMyRequestResponse> {
  const payload = JSON.stringify(body);
  return on.inject({ method: 'POST', url: `/routines/${routineId}/trigger`, headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload });
}

async function rows(): Promise<Record<string, unknown>[]> {
  return (await deployment.database.query<Record<string, unknown>>('select * from runs order by created_at, id')).rows;
}

const startsOf = (runId: string) => deployment.owner.commands.filter((command) => command.type === 'run.start' && command.runId === runId);

describe('refusals', () => {
  it('answers 401 before anything else', async () => {
    expect((await app().inject({ method: 'POST', url: '/routines/unknown/trigger', payload: '{' })).statusCode).toBe(401);
  });

  it.each(['unknown', 'talk', 'switched-off', 'a%00b', 'x'.repeat(200)])(
    'answers 404 for %s, which is no autonomous routine that is on, whatever the body',
    async (id) => {
      for (const payload of ['{', '[]', JSON.stringify(TRIGGER)]) {
        const reply = await app().inject({
          method: 'POST',
          url: `/routines/${id}/trigger`,
          headers: { ...BEARER, 'content-type': 'application/json' },
          payload,
        });
        expect(reply.statusCode).toBe(404);
        expect(reply.json()).toMatchObject({ code: 'not_found' });
      }
    },
  );

  it.each([
    ['no callback address', { input: {} }, '/callback_url'],
    ['an input that is a list', { ...TRIGGER, input: [] }, '/input'],
    ['metadata that is a text', { ...TRIGGER, metadata: 'x' }, '/metadata'],
    ['a key that is a number', { ...TRIGGER, idempotency_key: 7 }, '/idempotency_key'],
    ['a body that is a list', [TRIGGER], ''],
  ])('answers 400 to %s and names it', async (_case, body, path) => {
    const reply = await trigger('triage', body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path });
    expect(await rows()).toEqual([]);
  });

  it.each([
    ['of another host', 'https://badexample.com/', /the callback_url_allowlist of the routine "triage"$/],
    ['without encryption', 'http://hooks.example.com/', /OUTBOUND_ALLOW_HOSTS=hooks\.example\.com:80 /],
    ['with a password', 'https://a:b@hooks.example.com/', /password$/],
    ['that is none', 'hooks.example.com', /absolute URL/],
  ])('answers 400 to a callback address %s, before it looks at the input', async (_case, callback_url, why) => {
    const reply = await trigger('triage', { callback_url, input: { claim: 7 } });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toEqual({ error: expect.stringMatching(/^callback_url is not allowed: /), code: 'validation_failed', path: '/callback_url' });
    expect(reply.json().error).toMatch(why);
  });

  it.each([
    ['a property that is missing', {}, '/claim', '#/required'],
    ['a property of another type', { claim: 7 }, '/claim', '#/properties/claim/type'],
    ['an item of another type', { claim: 'x', parts: [1, 'two'] }, '/parts/1', '#/properties/parts/items/type'],
  ])('answers 400 to an input with %s, before it looks for the session, and says where', async (_case, input, path, schemaPath) => {
    const reply = await trigger('triage', { callback_url: DONE, input, session_id: 'ses_unknown' });

    expect(reply.statusCode).toBe(400);
    const error = expect.stringMatching(/ input_schema: (\/claim is missing|\/claim must be a string|\/parts\/1 must be an integer)$/);
    expect(reply.json()).toEqual({ error, code: 'validation_failed', path, schema_path: schemaPath });
  });

  it('answers 400 to an integer that would be changed, wherever it stands, and names it', async () => {
    const payload = JSON.stringify({ callback_url: DONE, input: { claim: 'x' }, metadata: { order: 'NUMBER' } }).replace('"NUMBER"', '9007199254740993');
    const reply = await (await app()).inject({
      method: 'POST',
      url: '/routines/triage/trigger',
      headers: { ...BEARER, 'content-type': 'application/json' },
      payload,
    });

    expect([reply.statusCode, reply.json()]).toMatchObject([400, { code: 'validation_failed', path: '/metadata/order' }]);
    expect(reply.json().error).toContain('9007199254740993');
  });

  it('reads an absent input as an empty one', async () => {
    expect((await trigger('triage', { callback_url: DONE })).json()).toMatchObject({ path: '/claim' });
    expect((await trigger('anything', { callback_url: DONE })).statusCode).toBe(202);
  });

  it.each(['ses_unknown', 'a.b', 'x'.repeat(300), 'ses\u0000'])('answers 500 for the unknown session %j', async (session_id) => {
    const reply = await trigger('triage', { ...TRIGGER, session_id });

    expect(reply.statusCode).toBe(500);
    expect(reply.json()).toEqual({ error: 'there is no session with this session_id', code: 'session_error' });
    expect(await rows()).toEqual([]);
  });

  it('answers 500 for a session that was deleted', async () => {
    const on = app();
    const session_id = await newSession(on);
    await on.inject({ method: 'DELETE', url: `/sessions/${session_id}`, headers: BEARER });

    expect((await trigger('triage', { ...TRIGGER, session_id }, { on })).statusCode).toBe(500);
  });
});

describe('an accepted run', () => {
  it.each([-3_600_000, 3_600_000])('DESIGN 6: the instants of a run are those of the database, whatever the clock of its gateway', async (shiftMs) => {
    const on = app({ clock: { nowMs: () => Date.now() + shiftMs } });
    const clockOf = async () => (await deployment.database.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]?.now.getTime() ?? Number.NaN;
    const beforeMs = await clockOf();
    const reply = await trigger('triage', TRIGGER, { on });
    const afterMs = await clockOf();

    const [row] = await rows();
    const createdAtMs = Date.parse(reply.json().created_at);
    expect(row).toMatchObject({ created_at: new Date(createdAtMs), expires_at: new Date(createdAtMs + 600_000) });
    expect(createdAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(createdAtMs).toBeLessThanOrEqual(afterMs);
  });

  it('has no metadata when the caller sends null, as without the field', async () => {
    for (const body of [{ ...TRIGGER, metadata: null }, TRIGGER]) expect((await trigger('triage', body)).statusCode).toBe(202);

    expect((await rows()).map(({ metadata }) => metadata)).toEqual([null, null]);
  });

  it('DESIGN 4: a run has a session, whose id is derived from its own, and its start command has the run’s id', async () => {
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    const metadata = { ticket: 4711, text: '\u0000 \ud800' };

    const reply = await trigger('triage', { ...TRIGGER, metadata }, { headers: { traceparent } });

    const run = reply.json();
    expect(reply.statusCode).toBe(202);
    expect(run).toEqual({
      run_id: expect.stringMatching(/^run_[0-9A-Z]{26}$/),
      routine_id: 'triage',
      status: 'accepted',
      session_id: run.run_id.replace('run_', 'ses_'),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    const createdAt = new Date(run.created_at);
    expect(await rows()).toEqual([
      {
        id: run.run_id,
        p: partitionOf(run.session_id),
        session_id: run.session_id,
        customer_id: run.run_id.replace('run_', 'cus_'),
        ephemeral: true,
        routine_id: 'triage',
        idempotency_key: run.run_id,
        bundle_hash: BUNDLE_HASH,
        state: 'accepted',
        input: TRIGGER.input,
        metadata,
        callback_url: DONE,
        trace_id: 'a'.repeat(32),
        traceparent,
        timeout_ms: 7_500,
        expires_at: new Date(createdAt.getTime() + 600_000),
        output: null,
        error: null,
        created_at: createdAt,
        started_at: null,
        completed_at: null,
      },
    ]);
    await until(() => startsOf(run.run_id).length > 0, 'the command');
    expect(startsOf(run.run_id)).toEqual([
      {
        v: 1,
        type: 'run.start',
        sessionId: run.session_id,
        commandId: run.run_id,
        sentAtMs: createdAt.getTime(),
        answerTo: null,
        traceparent,
        runId: run.run_id,
      },
    ]);
  });

  it('executes in the named session, with its customer', async () => {
    const on = app();
    const session = (await on.inject({ method: 'POST', url: '/sessions', headers: BEARER, payload: { title: '\u0000' } })).json();

    const reply = await trigger('triage', { ...TRIGGER, session_id: session.id }, { on });

    expect(reply.json()).toMatchObject({ session_id: session.id });
    expect(await rows()).toMatchObject([
      {
        session_id: session.id,
        customer_id: session.customer_id,
        ephemeral: false,
        p: partitionOf(session.id),
        trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
    ]);
  });

  it.each([
    ['anything', 120_000],
    ['patient', 600_000],
    ['triage', 7_500],
  ])('of %s may take %d ms', async (routineId, timeoutMs) => {
    await trigger(routineId, TRIGGER);

    expect(await rows()).toMatchObject([{ timeout_ms: timeoutMs }]);
  });

  it('DESIGN 5: a run is accepted although no command can be sent: its row is enough', async () => {
    const append: Bus['commands']['append'] = () => Promise.reject(new Error('no broker'));
    const late: Bus['commands']['append'] = () => new Promise(() => {});
    for (const broken of [append, late]) {
      const on = app({ bus: { ...deployment.bus, commands: { ...deployment.bus.commands, append: broken } }, waits: { publishMs: 20 } });

      const reply = await trigger('triage', TRIGGER, { on });

      expect(reply.statusCode).toBe(202);
      expect(await rows()).toMatchObject([{ id: reply.json().run_id, state: 'accepted' }]);
      await deployment.database.query('delete from runs');
    }
  });

  it('is not acknowledged while the row can not be written', async () => {
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const database: Database = {
      ...deployment.database,
      query: (statement, parameters) =>
        typeof statement !== 'string' && statement.name === 'agent-gateway-accept-run'
          ? Promise.reject(away)
          : deployment.database.query(statement, parameters),
    };

    const reply = await trigger('triage', TRIGGER, { on: app({ database }) });

    expect(reply.statusCode).toBe(503);
    expect(reply.headers['retry-after']).toBe('1');
  });
});

describe('an idempotency key', () => {
  it('DESIGN 5: a repeated key returns its first run, whatever its state and before the rest of the body is validated', async () => {
    const first = await trigger('triage', { ...TRIGGER, idempotency_key: 'k' });
    await deployment.database.query(`update runs set state = 'succeeded', output = '{}'`);

    for (const body of [TRIGGER, { callback_url: 'http://10.0.0.1/', input: { claim: 7 }, session_id: 'ses_unknown' }]) {
      const repeat = await trigger('triage', { ...body, idempotency_key: 'k' });
      expect(repeat.statusCode).toBe(409);
      expect(repeat.json()).toEqual({ error: expect.any(String), code: 'conflict', ...first.json(), status: 'succeeded' });
    }
    expect(await rows()).toHaveLength(1);
  });

  it('may be the header of other writes, which wins over the field of the body', async () => {
    const first = await trigger('triage', TRIGGER, { headers: { 'idempotency-key': 'k' } });
    const repeats = [
      await trigger('triage', TRIGGER, { headers: { 'idempotency-key': 'k' } }),
      await trigger('triage', { ...TRIGGER, idempotency_key: 'other' }, { headers: { 'idempotency-key': 'k' } }),
      await trigger('triage', { ...TRIGGER, idempotency_key: 'k' }),
    ];

    expect(first.statusCode).toBe(202);
    expect(repeats.map((reply) => [reply.statusCode, reply.json().run_id])).toEqual(Array(3).fill([409, first.json().run_id]));
    expect((await trigger('triage', TRIGGER, { headers: { 'idempotency-key': '' } })).json()).toMatchObject({ path: '/idempotency-key' });
    expect(await rows()).toHaveLength(1);
  });

  it('does not accept a body of the wrong form', async () => {
    await trigger('triage', { ...TRIGGER, idempotency_key: 'k' });

    expect((await trigger('triage', { idempotency_key: 'k' })).statusCode).toBe(400);
  });

  it('is scoped to the routine, and distinct from other keys, whatever it holds', async () => {
    const { run_id } = (await trigger('triage', TRIGGER)).json();

    for (const idempotency_key of ['k', 'K', ' k', '\u0000', run_id, `key:${run_id}`]) {
      expect((await trigger('triage', { ...TRIGGER, idempotency_key })).statusCode).toBe(202);
    }
    expect((await trigger('anything', { ...TRIGGER, idempotency_key: 'k' })).statusCode).toBe(202);
  });

  it('DESIGN 5: of many concurrent triggers with one key one is the first, and the others get its run', async () => {
    const gateways = [app(), app()];

    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => trigger('triage', { ...TRIGGER, idempotency_key: 'k' }, { on: gateways[n % 2] ?? app() })),
    );

    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([202, ...Array(19).fill(409)]);
    expect(new Set(replies.map((reply) => reply.json().run_id)).size).toBe(1);
    const [run] = await rows();
    await until(() => startsOf(String(run?.id)).length > 0, 'the command');
    expect(startsOf(String(run?.id))).toHaveLength(1);
  });
});
