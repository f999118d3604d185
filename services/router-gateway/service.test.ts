import { once } from 'node:events';
import { Agent, type ClientRequest, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type GatewayLimits, gatewayLimits } from './limits.ts';
import { startRouterGateway } from './service.ts';
import { environment, HOUSE_SECRET, KEY, testConfig } from './test-support/harness.ts';
import { post } from './test-support/http-client.ts';
import { type ScriptedWorker, startScriptedWorker } from './test-support/scripted-worker.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const headers = { authorization: `Bearer ${KEY}` };
const whole = { messages: [{ role: 'user', content: 'Hello' }] };
const streamed = { ...whole, stream: true };
/** Longer than a test. */
const NEVER_MS = 600_000;

let database: Database;
let bus: Bus;
let worker: ScriptedWorker;
let gateway: Awaited<ReturnType<typeof startRouterGateway>>;

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  worker = startScriptedWorker(bus);
});

afterEach(() => gateway.stop());

afterAll(async () => {
  await worker.stop();
  await bus.close();
  await database.close();
});

const depsOf = (port: number, drainTimeoutMs: number, limits: Partial<GatewayLimits> = {}) => ({
  config: { host: '127.0.0.1', port, drainTimeoutMs },
  routerConfig: testConfig,
  environment,
  houseSecret: HOUSE_SECRET,
  bus,
  database: null,
  cache: null,
  log: silentLog,
  clock: systemClock,
  limits: { ...gatewayLimits, ...limits },
});

async function start(drainTimeoutMs = 10_000, limits: Partial<GatewayLimits> = {}) {
  gateway = await startRouterGateway(depsOf(0, drainTimeoutMs, limits));
  return `${gateway.url}/api/v1/chat/completions`;
}

const readiness = async () => {
  const response = await fetch(`${gateway.url}/health/ready`);
  return [response.status, await response.json()];
};

/** A request with a body that never ends, after the gateway has read its head. */
async function beginToPost(url: string): Promise<ClientRequest> {
  const head = { ...headers, 'content-type': 'application/json', 'content-length': 1_000, expect: '100-continue' };
  const sent = request(url, { method: 'POST', headers: head });
  await once(sent, 'continue');
  sent.write('{"messages": [');
  return sent;
}

describe('starting', () => {
  it('names a port in use, and leaves nothing open', async () => {
    await start();
    const port = Number(new URL(gateway.url).port);

    await expect(startRouterGateway(depsOf(port, 0))).rejects.toMatchObject({
      code: 'service.port_taken',
      message: `Port ${port} of 127.0.0.1 is taken by another program`,
      details: { port },
    });
    expect(await readiness()).toEqual([200, { status: 'ok' }]);
  });

  it('fails on a configuration that lacks a secret', async () => {
    await start();

    await expect(startRouterGateway({ ...depsOf(0, 0), environment: {} })).rejects.toMatchObject({ code: 'config.invalid' });
  });

  it('DESIGN 7: each gateway has its own origin, which is never a number', async () => {
    const origins = new Set<string>();
    for (let count = 0; count < 3; count += 1) {
      const client = post(await start(), whole, headers);
      const held = await worker.next();
      held.body(200, {});
      await (await client.answer).ended;
      await gateway.stop();
      origins.add(held.call.origin);
    }

    expect(origins.size).toBe(3);
    for (const origin of origins) expect(origin).toMatch(/^g[0-9a-f]{12}$/);
  });
});

describe('one gateway', () => {
  it('DESIGN 7: a gateway serves many calls independently, streamed and whole', async () => {
    const url = await start();
    const clients = Array.from({ length: 20 }, (_, index) => post(url, { ...(index % 2 === 0 ? streamed : whole), user: String(index) }, headers));
    const calls = await Promise.all(clients.map(() => worker.next()));
    for (const { call, frame, body } of calls) {
      if (call.want === 'body') body(200, { user: call.request.user });
      else frame('content', 1, `user ${call.request.user}`);
    }
    for (const { call, frame } of calls) if (call.want === 'frames') frame('done', 2, '[DONE]');

    for (const [index, client] of clients.entries()) {
      const answer = await client.answer;
      expect(await answer.ended).toBe(true);
      if (index % 2 === 1) expect(JSON.parse(answer.text)).toEqual({ user: String(index) });
      else expect(answer.text).toMatch(new RegExp(`^id: .*\\ndata: user ${index}\\n\\nid: .*\\ndata: \\[DONE\\]\\n\\n$`));
    }
  });

  it('serves one connection repeatedly, after streams too', async () => {
    const url = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    for (let count = 0; count < 3; count += 1) {
      const text = new Promise<string>((resolve, reject) => {
        const sent = request(url, { method: 'POST', agent, headers: { ...headers, 'content-type': 'application/json' } }, (response) => {
          sockets.add(response.socket);
          let received = '';
          response.setEncoding('utf8').on('data', (piece: string) => {
            received += piece;
          });
          response.on('end', () => resolve(received));
        });
        sent.on('error', reject);
        sent.end(JSON.stringify(streamed));
      });
      const held = await worker.next();
      held.frame('content', 1, 'Hi');
      held.frame('done', 2, '[DONE]');
      expect(await text).toContain('[DONE]');
    }
    agent.destroy();

    expect(sockets.size).toBe(1);
  });

  it('aborts the call of a client that disconnects while it waits for a whole answer', async () => {
    const client = post(await start(), whole, headers);
    const { call } = await worker.next();
    client.leave();

    await expect(client.answer).rejects.toThrow();
    await eventually(() => worker.aborted.filter((id) => id === call.callId)).toHaveLength(1);
  });

  it('aborts it also when its worker had begun a stream that was not requested', async () => {
    // Silence of its worker would end the call too, but later.
    const url = await start(10_000, { silenceMs: 60_000, silenceMaxMs: 60_000 });
    const client = post(url, whole, headers);
    const { call, frame } = await worker.next();
    frame('content', 1, 'Hi');
    // Frames arrive in order: when this call is answered, the gateway has the other's frame.
    const next = post(url, whole, headers);
    (await worker.next()).body(200, {});
    await (await next.answer).ended;
    client.leave();

    await expect(client.answer).rejects.toThrow();
    await eventually(() => worker.aborted.filter((id) => id === call.callId)).toHaveLength(1);
  });

  it('aborts every call of a client that disconnects, also of requests that wait behind the first one of its connection', async () => {
    const url = new URL(await start(10_000, { openCalls: 3 }));
    const request = (body: unknown) => {
      const text = JSON.stringify(body);
      const head = [`POST ${url.pathname} HTTP/1.1`, 'host: test', `authorization: ${headers.authorization}`, 'content-type: application/json'];
      return [...head, `content-length: ${text.length}`, '', text].join('\r\n');
    };
    const socket = connect(Number(url.port), url.hostname, () => socket.write([streamed, whole, streamed].map(request).join('')));
    const held = [await worker.next(), await worker.next(), await worker.next()];
    for (const { call, frame } of held) if (call.want === 'frames') frame('content', 1, 'Hi');
    await once(socket, 'data');
    socket.destroy();

    const ids = held.map(({ call }) => call.callId);
    await eventually(() => ids.filter((id) => worker.aborted.includes(id))).toEqual(ids);
    // And there is capacity again.
    const next = post(url.href, whole, headers);
    (await worker.next()).body(200, {});
    expect((await next.answer).status).toBe(200);
  });

  it('logs no error of its own when a body breaks off', async () => {
    const lines: string[] = [];
    const note = (_: unknown, message: string) => void lines.push(message);
    gateway = await startRouterGateway({ ...depsOf(0, 0), log: { ...silentLog, info: note, error: note } });
    const sent = await beginToPost(`${gateway.url}/api/v1/chat/completions`);
    sent.on('error', () => {});
    sent.destroy();

    await eventually(() => lines).toEqual(['request']);
  });

  it.each([
    ['bytes that are not HTTP', 'NONSENSE\r\n\r\n', /could not be read/],
    [
      'headers that are too large',
      `GET / HTTP/1.1\r\nhost: x\r\nx-large: ${'x'.repeat(20_000)}\r\n\r\n`,
      /^The headers of the request are larger than 16384 bytes$/,
    ],
  ])('answers %s with a body of the router', async (_, bytes, message) => {
    await start();
    const { port } = new URL(gateway.url);
    const text = await new Promise<string>((resolve, reject) => {
      let received = '';
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes));
      socket.setEncoding('utf8').on('data', (piece: string) => {
        received += piece;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(received));
    });

    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    const { error } = JSON.parse(text.split('\r\n\r\n')[1] ?? '');
    expect(error).toMatchObject({ code: 400, type: 'invalid_request', param: '', message: expect.stringMatching(message) });
  });
});

describe('stopping', () => {
  it('lets calls in flight end, and refuses new ones', async () => {
    const url = await start();
    const streaming = post(url, streamed, headers);
    const first = await worker.next();
    first.frame('content', 1, 'Hi');
    const answer = await streaming.answer;
    const waiting = post(url, whole, headers);
    const second = await worker.next();

    const stopped = gateway.stop();
    const refused = await post(url, whole, headers).answer;
    await refused.ended;
    expect(refused.status).toBe(503);
    expect(refused.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
    expect(JSON.parse(refused.text).error).toMatchObject({ code: 503, message: 'this gateway is shutting down', type: 'server' });
    expect(await readiness()).toEqual([503, { status: 'draining' }]);

    first.frame('content', 2, 'there');
    first.frame('done', 3, '[DONE]');
    second.body(200, { whole: true });
    expect(await answer.ended).toBe(true);
    expect(answer.text).toContain('[DONE]');
    const other = await waiting.answer;
    await other.ended;
    expect(JSON.parse(other.text)).toEqual({ whole: true });
    await stopped;
    await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
  });

  it('ends what does not end in time: a stream with an error chunk, others with 503, and aborts only the call that its client can’t resume', async () => {
    const url = await start(20);
    const streaming = post(url, streamed, headers);
    const first = await worker.next();
    first.frame('content', 1, 'Hi');
    const answer = await streaming.answer;
    const waiting = post(url, whole, headers);
    const second = await worker.next();

    await gateway.stop();

    expect(await answer.ended).toBe(true);
    const chunk = JSON.parse(answer.text.trimEnd().split('\ndata: ').at(-1) ?? '');
    expect(chunk).toMatchObject({ id: first.call.callId, error: { code: 503, metadata: { error_type: 'server', retry_after: 1 } } });
    expect(answer.text).not.toContain('[DONE]');
    const other = await waiting.answer;
    await other.ended;
    expect(other.status).toBe(503);
    expect(worker.aborted).toContain(second.call.callId);
    expect(worker.aborted).not.toContain(first.call.callId);
  });

  it('disconnects a client that is still sending its request', async () => {
    const url = await start(20, { stopFlushMs: 20 });
    const sent = await beginToPost(url);
    const cut = new Promise<Error>((resolve) => sent.on('error', resolve));

    await gateway.stop();

    expect(await cut).toMatchObject({ code: 'ECONNRESET' });
  });

  it('refuses a call whose body does not arrive, which it would be held by otherwise', async () => {
    const url = await start(NEVER_MS, { stopBodyMs: 1 });
    const sent = await beginToPost(url);
    const answered = once(sent, 'response');

    await gateway.stop();

    const [{ statusCode, headers: answer }] = await answered;
    expect([statusCode, answer.connection, answer['retry-after']]).toEqual([503, 'close', '1']);
    sent.destroy();
  });

  it('lets a call in whose body arrives soon', async () => {
    const url = await start(NEVER_MS, { stopBodyMs: NEVER_MS });
    const text = JSON.stringify(whole);
    const sent = request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': text.length, expect: '100-continue' },
    });
    await once(sent, 'continue');
    const answered = once(sent, 'response');
    const stopped = gateway.stop();
    sent.end(text);
    (await worker.next()).body(200, {});

    const [answer] = await answered;
    expect(answer.statusCode).toBe(200);
    answer.resume();
    await stopped;
  });

  it('is not held by requests without a key', async () => {
    await start(NEVER_MS, { stopFlushMs: 1 });
    const sent = await beginToPost(`${gateway.url}/api/v1/auth/keys`);
    const cut = once(sent, 'error');

    await gateway.stop();

    sent.destroy();
    await cut.catch(() => {});
  });

  it('disconnects a client that does not read its error, and may be called twice', async () => {
    const url = await start(20, { unsentBytes: 512 * 1_024 * 1_024, stopFlushMs: 50 });
    const client = post(url, streamed, headers);
    const held = await worker.next();
    held.frame('content', 1, 'Hi');
    const answer = await client.answer;
    answer.stopReading();
    held.frame('content', 2, 'x'.repeat(32 * 1_024 * 1_024));

    await Promise.all([gateway.stop(), gateway.stop()]);

    await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
    answer.leave();
    expect(await answer.ended).toBe(false);
  });
});
