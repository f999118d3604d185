import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { BEARER, newSession, openTestDeployment, read, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(() => {
  deployment.owner.silent.answers = false;
  return deployment.closeApps();
});

const SHIPPED = { tool_id: 'shop:order', result: { state: 'shipped' } };

async function inject(sessionId: string, body: unknown, headers: Record<string, string> = {}, app = deployment.app()) {
  const payload = JSON.stringify(body);
  return app.inject({
    method: 'POST',
    url: `/sessions/${sessionId}/tool_events`,
    headers: { ...BEARER, 'content-type': 'application/json', ...headers },
    payload,
  });
}

function commandsOf(sessionId: string) {
  return deployment.owner.commands.filter((command) => command.sessionId === sessionId && command.type === 'tool-event.post');
}

describe('POST /sessions/{id}/tool_events', () => {
  it('answers 401 without the key, and 404 for an unknown session', async () => {
    expect((await inject('ses_unknown', SHIPPED, { authorization: 'Bearer wrong' })).statusCode).toBe(401);
    const reply = await inject('ses_unknown', SHIPPED);

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toEqual({ error: 'there is no such session', code: 'not_found' });
  });

  it.each(['ses_unknown', 'a.b', 'ses%00'])('answers 404 rather than 400 when neither the session %s nor the body is valid', async (id) => {
    expect((await inject(id, { tool_id: '' })).statusCode).toBe(404);
  });

  it.each([
    ['no id', { result: 1 }, '/tool_id', 'tool_id'],
    ['no result', { tool_id: 'shop:order' }, '/result', 'result is required: any JSON value'],
    ['a result above 256 KiB', { tool_id: 'shop:order', result: 'x'.repeat(256 * 1_024) }, '/result', 'must have at most 256 KiB'],
    ['the reserved name in metadata', { ...SHIPPED, event_metadata: { idempotency_key: 'k' } }, '/event_metadata/idempotency_key', 'is reserved'],
    ['arguments that are a list', { ...SHIPPED, arguments: [] }, '/arguments', 'arguments'],
  ])('answers 400 with the path for %s, and stores nothing', async (_, body, path, why) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const reply = await inject(sessionId, body, {}, app);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path, error: expect.stringContaining(why) });
    expect(commandsOf(sessionId)).toEqual([]);
  });

  it('answers 200 with the position of the event, which readers get with all that was sent', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const body = { ...SHIPPED, arguments: { id: 7 }, result_metadata: { source: 'crm' }, event_metadata: { by: 'crm' }, idempotency_key: 'k1' };
    const reply = await inject(sessionId, body, {}, app);
    const [event] = (await read(app, sessionId, 'wait_for_data=0')).json() as { id: string; created_at: string; trace_id: string }[];

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual({ event_id: event?.id, offset: 0, creation_utc: event?.created_at, trace_id: event?.trace_id });
    expect(event).toMatchObject({ kind: 'tool', source: 'system', metadata: { by: 'crm', idempotency_key: 'k1' } });
    expect(event).toMatchObject({
      tool_calls: [{ tool_id: 'shop:order', arguments: { id: 7 }, result: { data: SHIPPED.result, metadata: { source: 'crm' } } }],
    });
  });

  it('requests a turn only when trigger_processing is true', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await inject(sessionId, SHIPPED, {}, app);
    await inject(sessionId, { ...SHIPPED, trigger_processing: true }, {}, app);

    expect(commandsOf(sessionId)).toMatchObject([
      { v: 3, triggersTurn: false, arguments: {}, resultMetadata: {}, metadata: {} },
      { v: 3, triggersTurn: true },
    ]);
  });

  it('answers a repeated key with the first reply, whatever else the body has, and appends nothing', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const first = await inject(sessionId, { ...SHIPPED, idempotency_key: 'k' }, {}, app);
    const second = await inject(sessionId, { tool_id: 'other', result: 2, idempotency_key: 'k' }, {}, app);
    const byHeader = await inject(sessionId, SHIPPED, { 'idempotency-key': 'k' }, app);

    for (const reply of [second, byHeader]) expect({ status: reply.statusCode, body: reply.json() }).toEqual({ status: 200, body: first.json() });
    expect((await read(app, sessionId, 'wait_for_data=0')).json()).toHaveLength(1);
  });

  it('takes the same key for a message and a tool event: they are different operations', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await inject(sessionId, { ...SHIPPED, idempotency_key: 'k' }, {}, app);
    const payload = JSON.stringify({ kind: 'user_message', text: 'Hello', idempotency_key: 'k' });
    const headers = { ...BEARER, 'content-type': 'application/json' };

    expect((await app.inject({ method: 'POST', url: `/sessions/${sessionId}/events`, headers, payload })).statusCode).toBe(201);
  });

  it('answers 503 when there is no reply in time, and the repeat reads it', async () => {
    const app = deployment.app({ waits: { silenceMs: 20, replyMs: 120 } });
    const sessionId = await newSession(app);
    const release = deployment.owner.hold();
    const late = await inject(sessionId, { ...SHIPPED, idempotency_key: 'k' }, {}, app);
    release();

    expect(late.statusCode).toBe(503);
    expect(late.headers['retry-after']).toBe('1');
    const patient = deployment.app();
    expect(await inject(sessionId, { ...SHIPPED, idempotency_key: 'k' }, {}, patient)).toMatchObject({ statusCode: 200 });
    expect((await read(patient, sessionId, 'wait_for_data=0')).json()).toHaveLength(1);
  });
});
