import { Readable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { environment, KEY, openTestApp, testConfig } from './test-support/harness.ts';
import { authorization, CHAT, hello, useGateway } from './test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

describe('a caller without a valid key', () => {
  it.each([
    ['none', {}, 'No API key was given: send it as "Authorization: Bearer <key>"'],
    ['another scheme', { authorization: 'Basic c2stdGVzdC0x' }, 'The Authorization header is not of the form "Bearer <key>"'],
    ['no secret', { authorization: 'Bearer ' }, 'The Authorization header is not of the form "Bearer <key>"'],
    ['two words', { authorization: `Bearer ${KEY} ${KEY}` }, 'The Authorization header is not of the form "Bearer <key>"'],
    ['an unknown one', { authorization: 'Bearer sk-test-9' }, 'The API key is not valid'],
    ['the beginning of one', { authorization: `Bearer ${KEY.slice(0, -1)}` }, 'The API key is not valid'],
    ['a disabled one', { authorization: 'Bearer sk-test-off' }, 'The API key is disabled'],
  ])('is refused with 401: %s', async (_, headers, message) => {
    for (const request of [
      { method: 'POST', url: CHAT, payload: hello },
      { method: 'GET', url: '/api/v1/models' },
    ] as const) {
      const response = await gateway.opened.app.inject({ ...request, headers });

      expect(response.statusCode).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      expect(response.json()).toEqual({ error: { code: 401, message, type: 'authentication', param: '', metadata: { error_type: 'authentication' } } });
    }
  });

  it('is refused before its body is read', async () => {
    const response = await gateway.opened.app.inject({ method: 'POST', url: CHAT, headers: { 'content-type': 'application/json' }, payload: '{' });

    expect(response.statusCode).toBe(401);
  });

  it('may write the scheme in any case', async () => {
    const response = await gateway.opened.app.inject({ method: 'GET', url: '/api/v1/models', headers: { authorization: `bearer ${KEY}` } });

    expect(response.statusCode).toBe(200);
  });
});

describe('a management key', () => {
  const headers = { authorization: `Bearer ${environment.KEY_MANAGEMENT}` };

  it.each([
    ['POST', CHAT],
    ['GET', '/api/v1/generations/gen-g1-01h-0/stream'],
  ] as const)('reaches no model: %s %s', async (method, url) => {
    const response = await gateway.opened.app.inject({ method, url, headers, ...(method === 'POST' ? { payload: hello } : {}) });

    expect(response.statusCode).toBe(403);
    expect(response.json()).toMatchObject({ error: { code: 403, type: 'permission_denied', message: 'A management key calls no model: use another key' } });
  });

  it('reaches the catalogue', async () => {
    expect((await gateway.opened.app.inject({ method: 'GET', url: '/api/v1/models', headers })).statusCode).toBe(200);
  });
});

describe('a body without a type', () => {
  it.each([
    ['of known size', () => JSON.stringify(hello), {}],
    ['in pieces', () => Readable.from([JSON.stringify(hello).slice(0, 9), JSON.stringify(hello).slice(9)]), { 'transfer-encoding': 'chunked' }],
  ])('is read as JSON: %s', async (_case, payload, framing) => {
    const answering = gateway.post(payload(), { 'content-encoding': 'identity', ...framing });
    await gateway.answerNext();

    expect((await answering).statusCode).toBe(200);
  });
});

describe('the prefix /v1', () => {
  it('is an alias of /api/v1', async () => {
    const ask = (url: string, headers = {}) => gateway.opened.app.inject({ method: 'GET', url, headers: { authorization, ...headers } });
    const answering = gateway.opened.app.inject({ method: 'POST', url: '/v1/chat/completions', headers: { authorization }, payload: hello });
    await gateway.answerNext();

    expect((await answering).statusCode).toBe(200);
    for (const path of ['/models', '/models/acme/large/endpoints', '/models/none', '/generations/gen-x/stream']) {
      const [published, alias] = [await ask(`/api/v1${path}`), await ask(`/v1${path}`)];
      expect([path, alias.statusCode, alias.body]).toEqual([path, published.statusCode, published.body]);
    }
    expect((await ask('/v1/models', { authorization: 'Bearer sk-test-9' })).statusCode).toBe(401);
    expect((await ask('/v1/nothing')).json().error.message).toBe('There is nothing at /v1/nothing');
  });
});

describe('a request that is refused', () => {
  it.each([
    ['malformed JSON', '{"messages": [', 'application/json', 400, 'invalid_request'],
    ['no body', '', 'application/json', 400, 'invalid_request'],
    ['another media type', 'messages=1', 'application/x-www-form-urlencoded', 415, 'invalid_request'],
    ['a text', JSON.stringify(hello), 'text/plain', 415, 'invalid_request'],
    ['a prototype in the JSON', '{"__proto__": {"x": 1}, "messages": [{"role": "user", "content": "a"}]}', 'application/json', 400, 'invalid_request'],
  ])('has a body of the router: %s', async (_, payload, contentType, status, type) => {
    const response = await gateway.post(payload, { 'content-type': contentType });

    expect(response.statusCode).toBe(status);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.json()).toEqual({ error: { code: status, message: expect.stringMatching(/./), type, param: '', metadata: { error_type: type } } });
  });

  it('says which media type is taken', async () => {
    const response = await gateway.post(JSON.stringify(hello), { 'content-type': 'text/plain' });

    expect(response.json().error.message).toBe('This address takes no body of this Content-Type: send JSON as application/json');
  });

  it.each(['gzip', 'br', 'identity, gzip'])('has the encoding %s: 415, and the header is named', async (encoding) => {
    const response = await gateway.post(JSON.stringify(hello), { 'content-type': 'application/json', 'content-encoding': encoding });

    expect(response.statusCode).toBe(415);
    expect(response.json().error).toMatchObject({ code: 415, type: 'invalid_request', message: expect.stringContaining('Content-Encoding') });
  });

  it('has the charset UTF-16: 415', async () => {
    const response = await gateway.post(JSON.stringify(hello), { 'content-type': 'application/json; charset=utf-16' });

    expect(response.statusCode).toBe(415);
    expect(response.json().error).toMatchObject({ code: 415, type: 'invalid_request', message: expect.stringContaining('UTF-8') });
  });

  it('is not JSON, without a content type', async () => {
    const response = await gateway.post('messages=1');

    expect(response.statusCode).toBe(400);
  });

  it('names the field that the schema refuses', async () => {
    const response = await gateway.post({ messages: [{ role: 'user', content: 'a' }, { role: 'user' }] });

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({
      code: 400,
      param: 'messages[1].content',
      message: 'messages[1].content is missing; it must be a string or a list',
    });
  });

  it('is too large, whether its size is announced or not', async () => {
    await gateway.reopen({ limits: { bodyBytes: 1_000 } });
    const large = JSON.stringify({ messages: [{ role: 'user', content: 'a'.repeat(1_000) }] });

    const announced = await gateway.post(large, { 'content-type': 'application/json' });
    const streamed = await gateway.post(Readable.from([large]), { 'content-type': 'application/json' });

    for (const response of [announced, streamed]) {
      expect(response.statusCode).toBe(413);
      expect(response.json().error).toMatchObject({ code: 413, type: 'payload_too_large', param: '' });
    }
  });

  it('is nested too deeply for its later readers', async () => {
    const deep = `{"messages":[{"role":"user","content":"a"}],"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;

    const response = await gateway.post(deep, { 'content-type': 'application/json' });

    expect(response.statusCode).toBe(400);
    expect(response.json().error.message).toBe('The request is nested more than 200 levels deep');
  });

  it.each([
    ['nested too deeply', '['.repeat(1_000_000), 'The request is nested more than 200 levels deep'],
    ['of too many values', `{"messages":[${'{},'.repeat(400_000)}{}]}`, 'The request holds more than 100000 values'],
  ])('is large and %s: refused in the same way, before it is parsed', async (_, body, message) => {
    const parse = vi.spyOn(JSON, 'parse');
    const response = await gateway.post(body, { 'content-type': 'application/json' });
    const parsed = parse.mock.calls.filter(([text]) => text === body).length;
    parse.mockRestore();

    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual({ error: { code: 400, message, type: 'invalid_request', param: '', metadata: { error_type: 'invalid_request' } } });
    expect(parsed).toBe(0);
  });

  it('holds more values than are validated, or as many, all of them invalid', async () => {
    const wrong = (values: number) => `{"messages":[{"role":"assistant","tool_calls":[${'0,'.repeat(values - 1)}0]}]}`;

    const tooMany = await gateway.post(wrong(100_000), { 'content-type': 'application/json' });
    const many = await gateway.post(wrong(99_900), { 'content-type': 'application/json' });

    expect(tooMany.statusCode).toBe(400);
    expect(tooMany.json().error.message).toBe('The request holds more than 100000 values');
    expect(many.statusCode).toBe(400);
    expect(many.json().error.param).toBe('messages[0].tool_calls[0]');
  });

  it.each([
    [{ model: 'acme/huge' }, 'acme/huge is not a valid model ID', 'model'],
    [{ models: ['a/b', 'c/d'] }, 'a/b is not a valid model ID', 'models'],
    [{ model: 'e/f', models: ['a/b'] }, 'e/f is not a valid model ID', 'model'],
  ])('names no known model: %j', async (names, message, param) => {
    const response = await gateway.post({ ...hello, ...names });

    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual({ error: { code: 400, message, type: 'invalid_request', param, metadata: { error_type: 'invalid_request' } } });
    expect(response.headers['x-generation-id']).toBeUndefined();
  });

  it.each([
    ['a model name of 900,000 characters', { model: 'm'.repeat(900_000) }, 'model'],
    ['a field name of 900,000 characters', { logit_bias: { ['7'.repeat(900_000)]: 500 } }, expect.stringMatching(/^logit_bias\.7+…$/)],
  ])('gets a short error for %s', async (_, fields, param) => {
    const response = await gateway.post({ ...hello, ...fields });

    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toEqual(param);
    expect(response.body.length).toBeLessThan(3_000);
  });

  it('has a session id in its header that is too long', async () => {
    const response = await gateway.post(hello, { 'x-session-id': 's'.repeat(129) });

    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe('x-session-id');
  });

  it('has an unknown path, with any method', async () => {
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      const response = await gateway.opened.app.inject({ method, url: '/api/v1/nothing?x=1' });
      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual({
        error: { code: 404, message: 'There is nothing at /api/v1/nothing', type: 'not_found', param: '', metadata: { error_type: 'not_found' } },
      });
    }
  });

  it('uses the wrong method', async () => {
    const response = await gateway.opened.app.inject({ method: 'GET', url: CHAT, headers: { authorization } });

    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe('POST');
    expect(response.json().error).toMatchObject({ code: 405, type: 'invalid_request' });
  });

  it('uses the wrong method of an address with a parameter', async () => {
    const response = await gateway.opened.app.inject({ method: 'PUT', url: '/api/v1/keys/abc', headers: { authorization } });

    expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET, PATCH, DELETE']);
  });

  it('has an invalid URL', async () => {
    const response = await gateway.opened.app.inject({ method: 'GET', url: '/api/v1/%E0%A4%A' });

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ code: 400, type: 'invalid_request', param: '' });
  });
});

describe('DESIGN 8: unsupported fields', () => {
  const fields = { ...hello, plugins: [{ id: 'newer' }], temprature: 0.2 };
  const named = { 'x-switchyard-ignored': 'plugins[0]=newer, temprature' };

  it('is named in a header of a whole answer, of a stream, and of an error', async () => {
    const whole = gateway.post(fields);
    await gateway.answerNext();
    const streamed = gateway.post({ ...fields, stream: true });
    const held = await gateway.worker.next();
    held.frame('content', 1, '{}');
    held.frame('done', 2, '[DONE]');
    const refused = await gateway.post({ ...fields, model: 'none/such' });

    expect((await whole).headers).toMatchObject(named);
    expect((await streamed).headers).toMatchObject({ 'content-type': 'text/event-stream', ...named });
    expect([refused.statusCode, refused.headers]).toEqual([400, expect.objectContaining(named)]);
  });

  it('has no header without such fields', async () => {
    const response = gateway.post({ ...hello, temperature: 0.2 });
    await gateway.answerNext();
    expect((await response).headers).not.toHaveProperty('x-switchyard-ignored');
  });

  it('is refused when it is moderation, which must not seem to have happened', async () => {
    const response = await gateway.post({ ...hello, plugins: [{ id: 'moderation' }] });

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ code: 400, type: 'invalid_request', param: 'plugins[0]', message: expect.stringContaining('no engine') });
  });
});

describe('the list of models', () => {
  const get = (url: string) => gateway.opened.app.inject({ method: 'GET', url, headers: { authorization } });

  it('shows each model once, with exact prices per token', async () => {
    const response = await get('/api/v1/models');

    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ object: 'list', links: { next: null }, total_count: 2 });
    expect(response.json().data).toEqual([
      {
        id: 'acme/large',
        object: 'model',
        owned_by: 'acme',
        canonical_slug: 'acme/large',
        name: 'Acme Large',
        created: 0,
        description: 'The large one',
        context_length: 16_000,
        architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'], tokenizer: 'Other', instruct_type: null },
        pricing: { prompt: '0.00000015', completion: '0.0000025', request: '0.01', input_cache_read: '0.000000075' },
        top_provider: { context_length: 8_000, max_completion_tokens: 1_000, is_moderated: false },
        per_request_limits: null,
        supported_parameters: ['stop', 'temperature', 'tools'],
        default_parameters: null,
        supported_voices: null,
        links: { details: '/api/v1/models/acme/large/endpoints' },
      },
      expect.objectContaining({
        id: 'acme/small',
        name: 'acme/small',
        context_length: null,
        pricing: { prompt: '-1', completion: '-1' },
        supported_parameters: expect.arrayContaining(['temperature', 'response_format']),
      }),
    ]);
  });

  it('lists the endpoints of a model, at the URL that its entry links to', async () => {
    const { data } = (await get('/api/v1/models')).json();
    const [large, small] = await Promise.all(data.map(async ({ links }: { links: { details: string } }) => (await get(links.details)).json()));

    expect(large.data).toMatchObject({ id: 'acme/large', name: 'Acme Large', created: 0, description: 'The large one' });
    expect(large.data.endpoints).toEqual([
      {
        name: 'scripted | Acme Large',
        model_id: 'acme/large',
        model_name: 'Acme Large',
        provider_name: 'scripted',
        tag: 'scripted',
        context_length: 8_000,
        pricing: { prompt: '0.00000015', completion: '0.0000025', request: '0.01', input_cache_read: '0.000000075' },
        quantization: null,
        max_completion_tokens: 1_000,
        max_prompt_tokens: null,
        supported_parameters: ['stop', 'temperature'],
        status: 0,
        uptime_last_30m: null,
        uptime_last_5m: null,
        uptime_last_1d: null,
        supports_implicit_caching: true,
        supports_tool_choice: { none: false, auto: false, required: false, function: false },
        latency_last_30m: null,
        throughput_last_30m: null,
      },
      expect.objectContaining({ tag: 'scripted', context_length: 16_000, pricing: { prompt: '-1', completion: '-1' }, supports_implicit_caching: false }),
    ]);
    expect(small.data.endpoints).toEqual([expect.objectContaining({ model_id: 'acme/small', supported_parameters: expect.arrayContaining(['tools']) })]);
  });

  it.each(['acme/none/endpoints', 'acme/none', 'large/endpoints', 'endpoints'])('has nothing at /models/%s', async (path) => {
    const response = await get(`/api/v1/models/${path}`);

    expect(response.statusCode).toBe(404);
    expect(response.json().error).toMatchObject({ code: 404, type: 'not_found' });
  });

  it.each(['acme/large', 'acme%2Flarge', 'large'])('has one model at /models/%s, as clients read it that look at the top or into data', async (path) => {
    const [entry] = (await get('/api/v1/models')).json().data;
    expect((await get(`/api/v1/models/${path}`)).json()).toEqual({ ...entry, data: entry });
  });

  it('is counted', async () => {
    expect((await get('/api/v1/models/count')).json()).toEqual({ data: { count: 2 } });
  });
});

describe('every answer', () => {
  it('has the request id of the caller when it is well formed, else a new one', async () => {
    const idOf = async (given: string | null) => {
      const headers = given === null ? {} : { 'x-request-id': given };
      return (await gateway.opened.app.inject({ method: 'GET', url: '/health/live', headers })).headers['x-request-id'];
    };

    expect(await idOf('req-7.A_b')).toBe('req-7.A_b');
    expect(await idOf(null)).toMatch(/^req_[0-9A-Z]{26}$/);
    expect(await idOf('two words')).toMatch(/^req_/);
    expect(await idOf('x'.repeat(129))).toMatch(/^req_/);
  });

  it('has one log line, without the key and without texts', async () => {
    const response = gateway.post({ messages: [{ role: 'user', content: 'a private matter' }] });
    const call = await gateway.answerNext(200, { text: 'a private answer' });
    await response;

    await eventually(() => gateway.opened.log.lines.filter(({ message }) => message === 'request')).toHaveLength(1);
    const line = gateway.opened.log.lines.find(({ message }) => message === 'request');
    expect(line?.fields).toMatchObject({ method: 'POST', route: CHAT, status: 200, key_id: 'one', call_id: call.callId });
    expect(line?.fields).not.toHaveProperty('incomplete');
    expect(JSON.stringify(gateway.opened.log.lines)).not.toMatch(new RegExp(`private|${KEY}`));
  });
});

describe('health', () => {
  it('is ready while the bus can be reached and it is not draining, and alive in any case', async () => {
    const statusOf = async (name: string) => {
      const response = await gateway.opened.app.inject({ method: 'GET', url: `/health/${name}` });
      return [response.statusCode, response.json().status];
    };

    expect(await statusOf('ready')).toEqual([200, 'ok']);
    gateway.faults.ready = false;
    expect(await statusOf('ready')).toEqual([503, 'bus_unreachable']);
    gateway.faults.ready = true;
    gateway.opened.admission.close();
    expect(await statusOf('ready')).toEqual([503, 'draining']);
    expect(await statusOf('live')).toEqual([200, 'ok']);
  });
});

describe('a configuration that can not work', () => {
  const build = (change: Partial<typeof testConfig>, variables: Record<string, string | undefined> = {}) => {
    return () => openTestApp(gateway.bus, { config: { ...testConfig, ...change }, variables: { ...environment, ...variables } });
  };

  it('names the variable of a key that is not set, unless the key is disabled', () => {
    expect(build({}, { KEY_ONE: undefined })).toThrow("KEY_ONE is not set: the router's key 'one' needs it");
    expect(build({}, { KEY_OFF: undefined })).not.toThrow();
  });

  it('trims a secret, and refuses a secret that no caller could send', async () => {
    await gateway.reopen({ variables: { ...environment, KEY_ONE: ` ${KEY}\n` } });
    const response = await gateway.opened.app.inject({ method: 'GET', url: '/api/v1/models', headers: { authorization } });
    expect(response.statusCode).toBe(200);
    expect(build({}, { KEY_ONE: '  ' })).toThrow('KEY_ONE is not set');
    for (const secret of ['two words', 'schlüssel']) {
      expect(build({}, { KEY_ONE: secret })).toThrow(/^KEY_ONE: the secret of the router's key 'one' may contain only printable ASCII/);
    }
  });

  it('refuses two keys with one secret, without printing it', () => {
    expect(build({}, { KEY_TWO: KEY })).toThrow("the router's keys 'one' and 'two' have the same secret");
  });

  it('refuses an unknown default model', () => {
    expect(build({ default_model: 'no/such' })).toThrow("default_model: 'no/such' is not among the models");
    expect(build({ default_model: 'large' })).not.toThrow();
  });
});
