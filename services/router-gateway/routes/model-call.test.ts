import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { LoopBudget } from '#shared/loop-budget.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { testConfig } from '../test-support/harness.ts';
import { hello, useGateway } from '../test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

describe('an error of the gateway', () => {
  it('is reported without its text, and logged with it', async () => {
    await gateway.reopen({ limits: { shortDispatchBytes: 0, longDispatchBytes: 0 } });
    gateway.opened.app.get('/broken', () => {
      throw new TypeError('secret detail of the inside');
    });
    gateway.faults.beforePublish = async () => {
      throw new RangeError('secret detail of the inside');
    };

    const unreachable = await gateway.post(hello);
    const broken = await gateway.opened.app.inject({ method: 'GET', url: '/broken' });

    expect(unreachable.statusCode).toBe(503);
    expect(unreachable.body).not.toContain('secret detail');
    const warned = gateway.opened.log.lines.find(({ level }) => level === 'warn');
    expect(warned?.fields.err).toMatchObject({ code: 'service.not_ready', cause: new RangeError('secret detail of the inside') });

    expect(broken.statusCode).toBe(500);
    expect(broken.json()).toEqual({ error: { code: 500, message: 'Internal server error', type: 'server', param: '', metadata: { error_type: 'server' } } });
    expect(gateway.opened.log.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ err: expect.any(TypeError) }) }),
    );
  });

  it('is an unreachable bus: 503 with Retry-After', async () => {
    gateway.faults.ready = false;

    const response = await gateway.post(hello);

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.json().error).toMatchObject({ code: 503, metadata: { retry_after: 1 } });
  });

  it('DESIGN 4: is a bus that is four fifths full: 503, so that the results of admitted calls have capacity', async () => {
    gateway.faults.crowded = true;

    const response = await gateway.post(hello);

    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
  });

  it('is a tick that has admitted its limit of calls: 503 before the body is read, except for resumes', async () => {
    const budget = vi.spyOn(LoopBudget.prototype, 'admits').mockReturnValue(false);
    const refused = await gateway.post('{', { 'content-type': 'application/json' });
    const resumed = await gateway.post(hello, { 'last-event-id': 'gen-none.1.1' });
    budget.mockRestore();

    expect(refused.statusCode).toBe(503);
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.headers['x-request-id']).toMatch(/^req_/);
    expect(refused.json().error).toMatchObject({ code: 503, message: 'too many calls are waiting', metadata: { retry_after: 1 } });
    expect(resumed.statusCode).toBe(404);
  });

  it.each([{}, { 'x-detach': 'true' }])(
    'is a bus that does not accept the call in time: 503, and the call is withdrawn in case it was accepted (%o)',
    async (headers) => {
      await gateway.reopen({ limits: { publishMs: 20, shortDispatchBytes: 0, longDispatchBytes: 0 } });
      gateway.faults.beforePublish = () => new Promise(() => {});

      const response = await gateway.post(hello, headers);

      expect(response.statusCode).toBe(503);
      const callId = response.headers['x-generation-id'];
      await eventually(() => gateway.worker.withdrawn).toContain(callId);
    },
  );

  it('is a worker that streams in place of a whole answer: 500 at its end', async () => {
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    held.frame('content', 1, 'Hi');
    held.frame('done', 2, '[DONE]');

    expect(await Promise.race([answered.then(({ statusCode }) => statusCode), new Promise((resolve) => setTimeout(resolve, 2_000, 'nothing'))])).toBe(500);
  });

  it('is too many calls at once: 503 until one has ended', async () => {
    await gateway.reopen({ limits: { openCalls: 1 } });
    const first = gateway.post(hello);
    const held = await gateway.worker.next();

    const second = await gateway.post(hello);
    held.body(200, {});
    await first;
    const third = gateway.post(hello);
    await gateway.answerNext();

    expect(second.statusCode).toBe(503);
    expect(second.headers['retry-after']).toBe('1');
    expect((await third).statusCode).toBe(200);
  });

  it('is too many bodies at once, of which one is always accepted and a refused one does not count', async () => {
    await gateway.reopen({ limits: { bufferedBodyBytes: 10, shortDispatchBytes: 0, longDispatchBytes: 0 } });
    const publishing = holdPublishes();
    expect((await gateway.post({ messages: [] })).statusCode).toBe(400);
    const first = gateway.post(hello);
    await eventually(() => publishing.reached).toBe(true);
    expect((await gateway.post(hello)).statusCode).toBe(503);

    publishing.goOn();
    // The first call is on the bus and still open, but its body is released.
    const held = await gateway.worker.next();
    const third = gateway.post(hello);
    await gateway.answerNext();
    held.body(200, {});

    expect((await first).statusCode).toBe(200);
    expect((await third).statusCode).toBe(200);
  });

  it('is a body of unknown size that grows beyond the budget: it is refused half-way, with a response to its client', async () => {
    const size = Buffer.byteLength(JSON.stringify(hello));
    await gateway.reopen({ limits: { bufferedBodyBytes: size + 100, shortDispatchBytes: 0, longDispatchBytes: 0 } });
    const publishing = holdPublishes();
    const chunked = (text: string) => gateway.post(Readable.from([text.slice(0, 40), text.slice(40)]), { 'content-type': 'application/json' });
    const first = chunked(JSON.stringify(hello));
    await eventually(() => publishing.reached).toBe(true);
    const second = await chunked(JSON.stringify({ ...hello, user: 'x'.repeat(100) }));
    expect(second.statusCode).toBe(503);
    expect(second.headers['retry-after']).toBe('1');

    publishing.goOn();
    await gateway.answerNext();
    expect((await first).statusCode).toBe(200);
    const third = chunked(JSON.stringify({ ...hello, user: 'x'.repeat(100) }));
    await gateway.answerNext();
    expect((await third).statusCode).toBe(200);
  });
});

/** Holds publishes back until `goOn`. */
function holdPublishes(): { reached: boolean; goOn(): void } {
  const publishing = { reached: false, goOn: () => {} };
  gateway.faults.beforePublish = () =>
    new Promise((resolve) => {
      publishing.reached = true;
      publishing.goOn = () => {
        gateway.faults.beforePublish = async () => {};
        resolve();
      };
    });
  return publishing;
}

describe('a call for a whole answer', () => {
  it('is not held in memory once the bus has it, however long the answer takes', async () => {
    const requests: FastifyRequest[] = [];
    gateway.opened.app.addHook('onRequest', async (request) => void requests.push(request));
    const asked = gateway.post(hello);
    const held = await gateway.worker.next();

    await eventually(() => requests.map(({ body }) => body)).toEqual([undefined]);
    held.body(200, {});
    expect((await asked).statusCode).toBe(200);
  });

  it('is published unchanged, and answered with what the worker wrote', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const request = { ...hello, model: 'large', temperature: 0.5, future: { kept: true } };
    const before = Date.now();
    const response = gateway.post(request, { traceparent, 'x-session-id': 'session-1' });
    const call = await gateway.answerNext(200, { id: 'gen', choices: [] });

    expect((await response).statusCode).toBe(200);
    expect((await response).headers['content-type']).toMatch(/^application\/json/);
    expect((await response).json()).toEqual({ id: 'gen', choices: [] });
    expect((await response).headers['x-generation-id']).toBe(call.callId);
    expect(call).toEqual({
      v: 1,
      surface: 'chat-completions',
      callId: expect.stringMatching(/^gen-gtest\d+-[0-9A-Z]{26}-[0-9a-f]{20}$/),
      origin: gateway.opened.readers.origin,
      want: 'body',
      createdAtMs: expect.any(Number),
      deadlineAtMs: call.createdAtMs + 600_000,
      detached: false,
      republished: false,
      keyId: 'one',
      traceparent,
      maxTokens: null,
      request: { ...request, session_id: 'session-1' },
      reply: null,
    });
    expect(call.createdAtMs).toBeGreaterThanOrEqual(before);
  });

  it.each([
    ['a mark of its byte order before it', `\uFEFF${JSON.stringify(hello)}`],
    ['blanks around it', `\n ${JSON.stringify(hello, null, 2)}\r\n`],
    ['a field twice, of which the last counts', `{"messages":[],${JSON.stringify(hello).slice(1)}`],
    ['half of a letter in it, and no session', JSON.stringify({ ...hello, user: '\ud83d' })],
  ])('may be written with %s', async (_, text) => {
    const response = gateway.post(text, { 'content-type': 'application/json' });
    const call = await gateway.answerNext();

    expect((await response).statusCode).toBe(200);
    expect(call.request).toEqual(text.includes('ud83d') ? { ...hello, user: '\ud83d' } : hello);
  });

  it('is refused with two marks of its byte order before it: workers could not read it', async () => {
    const response = await gateway.post(`\uFEFF\uFEFF${JSON.stringify(hello)}`, { 'content-type': 'application/json' });

    expect(response.statusCode).toBe(400);
    expect(response.json().error.type).toBe('invalid_request');
  });

  it('has the session of its body, and begins a trace where the caller’s is invalid', async () => {
    const response = gateway.post({ ...hello, session_id: 'of-the-body' }, { 'x-session-id': 'x'.repeat(500), traceparent: 'nonsense' });
    const call = await gateway.answerNext();

    expect((await response).statusCode).toBe(200);
    expect(call.request.session_id).toBe('of-the-body');
    expect(call.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  });

  it.each([[{}], [{ models: [] }], [{ model: 'acme/latest' }], [{ model: 'no/such', models: ['nor/this', 'acme/small'] }]])(
    'may name its models like %j',
    async (names) => {
      const response = gateway.post({ ...hello, ...names });
      const call = await gateway.answerNext();

      expect((await response).statusCode).toBe(200);
      expect(call.request).toMatchObject(names);
    },
  );

  it.each([
    [402, { error: { code: 402, message: 'm', type: 'payment_required', param: '' } }, {}],
    [429, { error: { code: 429, message: 'm', type: 'rate_limit_exceeded', param: '', metadata: { retry_after: 6.2 } } }, { 'retry-after': '7' }],
    [503, { error: { code: 503, message: 'm', type: 'provider_overloaded', param: '', metadata: { retry_after: 3 } } }, { 'retry-after': '3' }],
    [503, { error: { code: 503, message: 'm', type: 'not_found', param: '' } }, { 'x-should-retry': 'false' }],
    [502, { error: { code: 502, message: 'm', type: 'provider_unavailable', param: '', metadata: { retry_after: 3 } } }, {}],
    [429, 'not an error body', {}],
  ])('has the status and the headers of its failure: %i %j', async (status, body, headers) => {
    const response = gateway.post(hello);
    const call = await gateway.answerNext(status, body);

    const { headers: sent, statusCode, json } = await response;
    expect(statusCode).toBe(status);
    expect(json()).toEqual(body);
    expect(sent['x-generation-id']).toBe(call.callId);
    expect({
      ...(sent['retry-after'] && { 'retry-after': sent['retry-after'] }),
      ...(sent['x-should-retry'] && { 'x-should-retry': sent['x-should-retry'] }),
    }).toEqual(headers);
  });

  it('has a status unknown to HTTP replaced', async () => {
    const response = gateway.post(hello);
    await gateway.answerNext(99);

    expect((await response).statusCode).toBe(500);
  });

  it('ends with 408 some time after its deadline when no worker answers, and is aborted', async () => {
    await gateway.reopen({ limits: { deadlineGraceMs: 10 }, config: { ...testConfig, timeouts: { ...testConfig.timeouts, total_ms: 20 } } });

    const response = await gateway.post(hello);
    const { call } = await gateway.worker.next();

    expect(response.statusCode).toBe(408);
    expect(response.json().error).toEqual({
      code: 408,
      message: 'The request exceeded its time limit',
      type: 'timeout',
      param: '',
      metadata: { error_type: 'timeout' },
    });
    await eventually(() => gateway.worker.aborted).toContain(call.callId);
  });

  it('is answered by a replay after its one frame was lost', async () => {
    await gateway.reopen({ limits: { silenceMs: 20 } });
    let lost = 0;
    gateway.faults.loses = () => {
      lost += 1;
      return true;
    };
    const response = gateway.post(hello);
    const held = await gateway.worker.next();
    held.body(200, { found: true });

    expect((await response).json()).toEqual({ found: true });
    gateway.faults.loses = () => false;
    expect(lost).toBe(1);
  });
});

describe('the messages of a long call', () => {
  const content = 'x"'.repeat(20_000);
  const texts = [{ role: 'user', content }];
  /** @returns the item as its worker gets it, and the numbers of its position */
  const sent = async (payload: string | object, headers = {}, path?: string) => {
    const dispatch = vi.spyOn(gateway.bus.work, 'dispatch');
    const posted = gateway.post(payload, { 'content-type': 'application/json', ...headers }, path);
    const call = await gateway.answerNext();
    expect((await posted).statusCode).toBe(200);
    const { messagesAt = null } = JSON.parse(Buffer.from(dispatch.mock.calls[0]?.[2] ?? Buffer.from('{}')).toString());
    dispatch.mockRestore();
    return { call, messagesAt };
  };

  it('are where the call says, so that its worker need not parse them', async () => {
    const { call, messagesAt } = await sent({ model: 'acme/small', messages: texts, user: 'ann' });
    const [all, behind] = [`${JSON.stringify(texts)},"user":"ann"}`, ',"user":"ann"}'].map(({ length }) => length);
    expect(messagesAt).toEqual([1, all, behind, content.length, 0, content.length]);
    expect(call.request).toEqual({ model: 'acme/small', messages: texts, user: 'ann' });
  });

  it.each([
    ['with white space and escapes', `{ "messages": [ { "role": "user", "content": "${'\\u0078\\u0022'.repeat(20_000)}" } ] }`],
    ['with a name twice', `{"messages":[],"messages":[{"role":"user","content":"a","content":${JSON.stringify(content)}}]}`],
    ['behind a byte order mark', `\ufeff${JSON.stringify({ messages: texts })}`],
  ])('are those that the gateway has checked, in a body %s', async (_, body) => {
    const { call, messagesAt } = await sent(body);
    expect(messagesAt).not.toBeNull();
    expect(call.request).toEqual({ messages: texts });
  });

  it('are stated, too, where the gateway changes the request', async () => {
    const { call, messagesAt } = await sent({ messages: texts }, { 'x-session-id': 's' });
    expect(messagesAt).not.toBeNull();
    expect(call.request).toEqual({ messages: texts, session_id: 's' });
  });

  it('are stated, too, in a call of another API', async () => {
    const { call, messagesAt } = await sent({ model: 'acme/small', input: content, instructions: 'be brief' }, {}, '/api/v1/responses');
    expect(messagesAt).not.toBeNull();
    expect(call.request.messages).toEqual([{ role: 'system', content: 'be brief' }, ...texts]);
  });

  it.each<[string, object]>([
    ['that hold a picture', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${content}` } }] }] }],
    ['that are short', { messages: [{ role: 'user', content: 'short' }] }],
  ])('are parsed by its worker %s', async (_, payload) => {
    const { call, messagesAt } = await sent(payload);
    expect(messagesAt).toBeNull();
    expect(call.request).toEqual(payload);
  });

  it.each([
    ['detached', { 'x-detach': 'true' }, {}],
    ['too long to be dispatched', {}, { longDispatchBytes: 33_000 }],
    ['beyond the budget of dispatches', {}, { longDispatchesBytes: 33_000 }],
    [
      'too long once it is written anew',
      {},
      { longDispatchBytes: 60_000 },
      `{"messages":[{"role":"user","content":"${'x'.repeat(33_000)}"}],"x":[${'1e20,'.repeat(2_000)}1]}`,
    ],
  ])('are as the client sent them in a call that is %s', async (_, headers, limits, body: string | object = { messages: texts }) => {
    await gateway.reopen({ limits });
    const publish = vi.spyOn(gateway.bus.work, 'publish');
    const dispatch = vi.spyOn(gateway.bus.work, 'dispatch');
    const posted = gateway.post(body, { 'content-type': 'application/json', ...headers });
    const call = await gateway.answerNext();
    await posted;
    expect([...publish.mock.calls, ...dispatch.mock.calls].map(([, , item]) => Buffer.from(item).toString())).toEqual([
      expect.not.stringContaining('messagesAt'),
    ]);
    expect(call.request.messages).toHaveLength(1);
    publish.mockRestore();
    dispatch.mockRestore();
  });
});
