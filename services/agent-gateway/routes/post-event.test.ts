import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { createLog } from '#shared/telemetry/log.ts';
import { BEARER, newSession, openTestDeployment, post, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

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

const HELLO = { kind: 'user_message', text: 'Hello' };
const SHORT = { silenceMs: 20, acceptMs: 60, replyMs: 120 };

function commandsOf(sessionId: string) {
  return deployment.owner.commands.filter((command) => command.sessionId === sessionId && command.type === 'message.post');
}

function postWith(app: ReturnType<TestDeployment['app']>, sessionId: string, query: string, body: object) {
  return app.inject({
    method: 'POST',
    url: `/sessions/${sessionId}/events?${query}`,
    headers: { ...BEARER, 'content-type': 'application/json' },
    payload: body,
  });
}

async function storedEvents(sessionId: string): Promise<number> {
  const { rows } = await deployment.database.query<{ count: number }>('select count(*)::int as count from events where session_id = $1', [sessionId]);
  return rows[0]?.count ?? 0;
}

describe('refusals', () => {
  it('answers 404 when the owner has no such session', async () => {
    const reply = await post(deployment.app(), 'ses_unknown', HELLO);

    expect(reply.statusCode).toBe(404);
    expect(reply.json()).toEqual({ error: 'there is no such session', code: 'not_found' });
  });

  it('answers 404 without a command for an impossible id', async () => {
    const commands = deployment.owner.commands.length;

    expect((await post(deployment.app(), 'a.b', HELLO)).statusCode).toBe(404);
    expect(deployment.owner.commands).toHaveLength(commands);
  });

  it.each(['ses_unknown', 'ses%00', 'a.b'])('answers 404 rather than 400 when neither the session %s nor the body is valid', async (id) => {
    expect((await post(deployment.app(), id, { kind: 'user_message' })).statusCode).toBe(404);
  });

  it.each([
    ['an empty text', { kind: 'user_message', text: '' }, '/text'],
    ['no text', { kind: 'user_message' }, '/text'],
    ['an empty message', { kind: 'message', message: '' }, '/message'],
    ['an unknown kind', { kind: 'shout', text: 'Hello' }, '/kind'],
    ['no kind', { text: 'Hello' }, '/kind'],
    ['a source that may not post', { kind: 'message', source: 'ai_agent', message: 'Hello' }, '/source'],
    ['a body that is a text', 'Hello', ''],
    ['an empty key', { ...HELLO, idempotency_key: '' }, '/idempotency_key'],
  ])('answers 400 to %s and names it', async (_case, body, path) => {
    const app = deployment.app();

    const reply = await post(app, await newSession(app), body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path });
  });

  it.each([
    ['human_agent', 'human_agent'],
    ['system', 'system'],
    ['unknown', 'human_agent'],
  ])('answers 400 to a user_message whose source is %s, and shows the valid form', async (source, shown) => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const reply = await post(app, sessionId, { ...HELLO, source });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path: '/source' });
    expect(reply.json().error).toMatch(/^source must be "customer" or "customer_ui", since /);
    const form = /\{"kind".*\}/.exec(reply.json().error)?.[0] ?? '';
    expect(JSON.parse(form)).toEqual({ kind: 'message', source: shown, message: '…' });
    expect((await post(app, sessionId, JSON.parse(form))).json()).toMatchObject({ source: shown });
    expect(commandsOf(sessionId)).toHaveLength(1);
  });

  it('answers 400 to a key in the header that is too long', async () => {
    const app = deployment.app();

    const reply = await post(app, await newSession(app), HELLO, { 'idempotency-key': 'k'.repeat(257) });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ path: '/idempotency-key' });
  });

  it('answers 400 without a body', async () => {
    const app = deployment.app();

    const reply = await app.inject({ method: 'POST', url: `/sessions/${await newSession(app)}/events`, headers: BEARER });

    expect(reply.statusCode).toBe(400);
  });
});

describe('a message', () => {
  it('is answered with its event', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const reply = await post(app, sessionId, { ...HELLO, metadata: { page: 3 } });

    expect(reply.statusCode).toBe(201);
    expect(reply.json()).toMatchObject({
      kind: 'user_message',
      offset: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      id: expect.stringMatching(/^evt_/),
      source: 'customer',
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      text: 'Hello',
      metadata: { page: 3 },
    });
  });

  it('is in the trace of the caller, and has a log line without its text', async () => {
    const lines: string[] = [];
    const log = createLog({ level: 'debug', service: 'agent-gateway', output: { write: (line) => lines.push(line) > 0 } });
    const app = deployment.app({ log });
    const sessionId = await newSession(app);
    const traceId = 'a'.repeat(32);

    const reply = await post(app, sessionId, HELLO, { traceparent: `00-${traceId}-${'b'.repeat(16)}-01` });

    expect(reply.json()).toMatchObject({ trace_id: traceId });
    const logged = lines.map((line) => JSON.parse(line)).filter((line) => line.trace_id === traceId);
    expect(logged).toMatchObject([{ level: 'info', msg: 'a command was accepted', type: 'message.post', session_id: sessionId, repeat: false }]);
    expect(lines.join('')).not.toContain(HELLO.text);
  });

  it('has the tracestate of its caller, and its baggage where the operator wants it', async () => {
    const headers = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'vendor=1', baggage: 'tenant=acme' };
    const carriedBy = async (passesBaggage: boolean, path = 'events', body: object = HELLO) => {
      const app = deployment.app({ passesBaggage });
      const sessionId = await newSession(app);
      const payload = JSON.stringify(body);
      const options = { headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload };
      await app.inject({ method: 'POST', url: `/sessions/${sessionId}/${path}`, ...options });
      return deployment.owner.commands.findLast((command) => command.sessionId === sessionId)?.carried;
    };

    expect(await carriedBy(false)).toEqual({ tracestate: 'vendor=1' });
    expect(await carriedBy(true)).toEqual({ tracestate: 'vendor=1', baggage: 'tenant=acme' });
    expect(await carriedBy(true, 'tool_events', { tool_id: 'shop:order', result: 1 })).toEqual({ tracestate: 'vendor=1', baggage: 'tenant=acme' });
  });

  it('of the chat page may have the native form', async () => {
    const app = deployment.app();

    expect((await post(app, await newSession(app), { ...HELLO, source: 'customer_ui' })).json()).toMatchObject({ kind: 'user_message', source: 'customer_ui' });
  });

  it('is stored with every character', async () => {
    const app = deployment.app();
    const text = '\u0000 \ud800 "quoted" \u2028 \u{1f600} \\ end';

    const reply = await post(app, await newSession(app), { kind: 'user_message', text });

    expect(reply.json()).toMatchObject({ text });
  });

  it.each([
    ['customer', true],
    ['customer_ui', true],
    ['human_agent', false],
    ['human_agent_on_behalf_of_ai_agent', false],
    ['system', false],
  ])('from %s asks for a turn by itself: %s', async (source, triggersTurn) => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const reply = await post(app, sessionId, { kind: 'message', source, message: 'Hello' });

    expect(reply.statusCode).toBe(201);
    expect(reply.json()).toMatchObject({ source, text: 'Hello' });
    expect(commandsOf(sessionId)).toMatchObject([{ source, triggersTurn }]);
  });

  it('starts a turn, or does not, as its sender requests', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    await post(app, sessionId, { ...HELLO, trigger_processing: false });
    await post(app, sessionId, { kind: 'message', source: 'system', message: 'Hello', trigger_processing: true });

    expect(commandsOf(sessionId)).toMatchObject([{ triggersTurn: false }, { triggersTurn: true }]);
  });

  it('is posted twice when it is sent twice without a key', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const replies = [await post(app, sessionId, HELLO), await post(app, sessionId, HELLO)];

    expect(replies.map((reply) => reply.statusCode)).toEqual([201, 201]);
    expect(replies.map((reply) => reply.json().offset)).toEqual([0, 1]);
  });
});

describe('moderation', () => {
  it.each(['auto', 'paranoid'])('rule 120: of a message is asked for by the query: %s', async (mode) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    expect((await postWith(app, sessionId, `moderation=${mode}`, HELLO)).statusCode).toBe(201);
    expect(commandsOf(sessionId)).toMatchObject([{ v: 3, moderation: mode }]);
  });

  it.each(['moderation=none', ''])('rule 120: is not asked for by the query "%s"', async (query) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await postWith(app, sessionId, query, HELLO);
    const [command] = commandsOf(sessionId);
    expect(command).toMatchObject({ v: 1 });
    expect(command).not.toHaveProperty('moderation');
  });

  it.each([
    ['another word', 'moderation=strict', HELLO],
    ['a message of a human agent', 'moderation=auto', { kind: 'message', source: 'human_agent', message: 'Hello' }],
    ['a message of the system', 'moderation=auto', { kind: 'message', source: 'system', message: 'Hello' }],
    ['an event of a front end', 'moderation=paranoid', { kind: 'custom', data: 1 }],
  ])('rule 120: answers 400 to %s', async (_, query, body) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const reply = await postWith(app, sessionId, query, body);
    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path: '/moderation' });
    expect(commandsOf(sessionId)).toEqual([]);
  });
});

describe('an idempotency key', () => {
  it.each([
    ['in the header', {}, { 'idempotency-key': 'k' }],
    ['in the body', { idempotency_key: 'k' }, {}],
  ])('%s makes a repeat answer with the first event', async (_case, fields, headers) => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const first = await post(app, sessionId, { ...HELLO, ...fields }, headers);
    const repeat = await post(app, sessionId, { kind: 'user_message', text: 'Something else', ...fields }, headers);

    expect(first.statusCode).toBe(201);
    expect(repeat.statusCode).toBe(200);
    expect(repeat.json()).toEqual(first.json());
    expect(await storedEvents(sessionId)).toBe(1);
  });

  it('DESIGN 4: a caller’s key makes one command of its repeats, in the header or the body and at every gateway', async () => {
    const [one, other] = [deployment.app(), deployment.app()];
    const sessionId = await newSession(one);

    const first = await post(one, sessionId, HELLO, { 'idempotency-key': 'k' });
    const repeat = await post(other, sessionId, { ...HELLO, idempotency_key: 'k' });

    expect(repeat.statusCode).toBe(200);
    expect(repeat.json()).toEqual(first.json());
  });

  it('DESIGN 4: a caller’s key is scoped to its session', async () => {
    const app = deployment.app();
    const sessions = [await newSession(app), await newSession(app)];

    for (const sessionId of sessions) expect((await post(app, sessionId, HELLO, { 'idempotency-key': 'k' })).statusCode).toBe(201);
  });

  it('makes one of many concurrent requests the first', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);

    const replies = await Promise.all(Array.from({ length: 20 }, () => post(app, sessionId, HELLO, { 'idempotency-key': 'k' })));

    expect(replies.map((reply) => reply.statusCode).sort()).toEqual([...Array(19).fill(200), 201]);
    expect(new Set(replies.map((reply) => reply.body)).size).toBe(1);
    expect(await storedEvents(sessionId)).toBe(1);
  });

  it('DESIGN 9: gets the first reply that is final: the repeat of a message that was refused for the moment is posted', async () => {
    const app = deployment.app({ waits: { silenceMs: 60_000, acceptMs: 60_000 } });
    const sessionId = await newSession(app);
    const send = () => post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
    deployment.owner.isOverloaded = true;
    const refused = [await send(), await send()];
    deployment.owner.isOverloaded = false;
    const [first, repeat] = [await send(), await send()];

    expect(refused.map(({ statusCode }) => statusCode)).toEqual([503, 503]);
    expect(refused[0]?.headers['retry-after']).toBeDefined();
    expect([first.statusCode, repeat.statusCode]).toEqual([201, 200]);
    expect(repeat.json()).toEqual(first.json());
    expect(await storedEvents(sessionId)).toBe(1);
  });

  it('is stored longer than the command log deduplicates it', async () => {
    const forgetful = {
      ...deployment.bus.commands,
      append: (p: number, id: string, body: string) => deployment.bus.commands.append(p, `${id}-${body.length}-${Math.random()}`, body),
    };
    const app = deployment.app({ bus: { ...deployment.bus, isReady: () => true, commands: { ...forgetful } } });
    const sessionId = await newSession(app);

    const first = await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
    const repeat = await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });

    expect([first.statusCode, repeat.statusCode]).toEqual([201, 200]);
    expect(repeat.json()).toEqual(first.json());
  });
});

describe('a reply that does not come', () => {
  it('is read from the processed command when it was lost', async () => {
    const app = deployment.app({ waits: { silenceMs: 20 } });
    const sessionId = await newSession(app);
    deployment.owner.silent.answers = true;

    const reply = await post(app, sessionId, HELLO);

    expect(reply.statusCode).toBe(201);
    expect(reply.json()).toMatchObject({ kind: 'user_message', offset: 0 });
  });

  it('is 202 for a customer’s message, which is in the log later', async () => {
    const app = deployment.app({ waits: SHORT });
    const sessionId = await newSession(app);
    const release = deployment.owner.hold();

    const reply = await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
    release();

    expect(reply.statusCode).toBe(202);
    expect(reply.json()).toEqual({ command_id: expect.stringMatching(new RegExp(`^${sessionId}-post-[0-9a-f]{64}$`)) });
    await until(async () => (await storedEvents(sessionId)) === 1, 'the message in the log');
    const repeat = await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
    expect(repeat.statusCode).toBe(200);
  });

  it('is 503 for a message that moderation is to read: the owner may refuse it for the moment, and a repeat is in the log once', async () => {
    const app = deployment.app({ waits: SHORT });
    const sessionId = await newSession(app);
    const release = deployment.owner.hold();
    const send = () => postWith(app, sessionId, 'moderation=auto', { ...HELLO, idempotency_key: 'k' });

    const reply = await send();
    deployment.owner.isOverloaded = true;
    release();
    const refused = `select 1 from seen where session_id = $1 and answer ->> 'code' = 'service.overloaded'`;
    await until(async () => (await deployment.database.query(refused, [sessionId])).rowCount === 1, 'the refusal');
    deployment.owner.isOverloaded = false;

    expect(reply.statusCode).toBe(503);
    expect(reply.headers['retry-after']).toBe('1');
    expect(reply.json()).toMatchObject({ code: 'not_ready' });
    expect(await storedEvents(sessionId)).toBe(0);
    const repeat = await send();
    expect(repeat.statusCode).toBe(201);
    expect(await storedEvents(sessionId)).toBe(1);
  });

  it('is 503 for every other message', async () => {
    const app = deployment.app({ waits: SHORT });
    const sessionId = await newSession(app);
    const release = deployment.owner.hold();

    const reply = await post(app, sessionId, { kind: 'message', source: 'human_agent', message: 'Hello' });
    release();

    expect(reply.statusCode).toBe(503);
    expect(reply.headers['retry-after']).toBe('1');
  });

  it('is 404, not 202, for an unknown session', async () => {
    const release = deployment.owner.hold();

    const reply = await post(deployment.app({ waits: SHORT }), 'ses_unknown', HELLO);
    release();

    expect(reply.statusCode).toBe(404);
  });

  it('is 503 when the command could not be stored', async () => {
    const commands = { ...deployment.bus.commands, append: () => new Promise<never>(() => {}) };
    const other = deployment.app();
    const sessionId = await newSession(other);

    const reply = await post(deployment.app({ bus: { ...deployment.bus, commands }, waits: SHORT }), sessionId, HELLO);

    expect(reply.statusCode).toBe(503);
    expect(reply.json()).toMatchObject({ code: 'not_ready' });
  });
});
