import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { closeApp } from '#shared/http-server/serve.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { buildApp } from './app.ts';
import { assemble } from './components.ts';
import { limits } from './limits.ts';
import { startAgentGateway } from './service.ts';
import { bundleWith } from './test-support/bundle.ts';
import { gatewaysOf } from './test-support/gateways.ts';
import { SIGNATURE_HEADER, WEBHOOK_SECRET } from './test-support/signed.ts';
import { BEARER, openTestDeployment, type TestDeployment } from './test-support/test-deployment.ts';
import { until } from './test-support/until.ts';

const SECRET = '$' + '{SECRET}';
/** Longer than a test. */
const NEVER_MS = 600_000;

let deployment: TestDeployment;
const { start, newSession, stream, stopAll } = gatewaysOf(() => deployment);
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => {
  deployment.owner.silent.notices = false;
  return stopAll();
});
afterAll(() => deployment.close());

describe('a request that can not be served as HTTP', () => {
  it.each([
    ['GET /health HTTP/1.1\r\n\r\n', 400],
    ['GET /health HTTP/1.1\r\nhost: x\r\nexpect: other\r\n\r\n', 400],
    ['CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n\r\n', 400],
    ['GET /health /more HTTP/1.1\r\nhost: x\r\n\r\n', 400],
    ['NONSENSE\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['POST /sessions HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n', 400],
  ])('is answered in the form of all other refusals, and closed', async (request, status) => {
    const { url } = await start();
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    let text = '';
    let isClosed = false;
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
    });
    socket.on('close', () => {
      isClosed = true;
    });
    socket.write(request);

    await until(() => isClosed, 'the end');

    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ error: expect.any(String), code: 'validation_failed' });
  });
});

describe('start', () => {
  it('fails on a port in use and names it', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await until(() => other.listening, 'the other server');
    const { port } = other.address() as AddressInfo;
    const deps = deployment.deps();

    await expect(startAgentGateway({ ...deps, config: { ...deps.config, port } })).rejects.toMatchObject({ code: 'service.port_taken', details: { port } });
    other.close();
  });

  it('becomes ready by itself, on the address that it returns', async () => {
    const { url } = await start();

    const health = await until(async () => {
      const reply = await fetch(`${url}/health/ready`);
      return reply.ok && (await reply.json());
    }, 'readiness');

    expect(health).toEqual({ status: 'ok', service: 'agent-server' });
  });
});

it('frees the slots of a poll and of a stream whose clients disconnect', async () => {
  const deps = deployment.deps({ streaming: true, waits: { idleFeedMs: 1 } });
  const components = assemble(deps);
  const app = buildApp(deps, components);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const gateway = { url };
  const sessionId = await newSession(gateway);
  const leaving = new AbortController();

  const poll = fetch(`${url}/sessions/${sessionId}/events?wait_for_data=60`, { headers: BEARER, signal: leaving.signal });
  const client = await stream(gateway, sessionId);
  await until(() => components.polls.size === 1 && components.streams.size === 1, 'both readers');
  leaving.abort();
  client.close();

  await expect(poll).rejects.toThrow();
  await until(() => components.polls.size === 0 && components.streams.size === 0, 'both places');
  await closeApp(app, limits.cutAfterMs);
});

describe('stop', () => {
  it('ends polls with an empty list and streams with a comment, and then refuses connections', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const polled = [await newSession(gateway), await newSession(gateway)] as const;
    const client = await stream(gateway, sessionId);
    const paths = [`${polled[0]}/events?wait_for_data=60`, `${polled[1]}/events`];
    const { begun: polls } = await deployment.afterPages(2, () => paths.map((path) => fetch(`${gateway.url}/sessions/${path}`, { headers: BEARER })));

    await gateway.stop();

    for (const reply of await Promise.all(polls)) {
      expect(reply.status).toBe(200);
      expect(reply.headers.get('connection')).toBe('close');
      expect(await reply.json()).toEqual([]);
    }
    await client.waitFor('the end', () => client.isEnded);
    expect(client.comments.at(-1)).toContain('shutting down');
    await expect(fetch(`${gateway.url}/health/live`)).rejects.toThrow();
  });

  it('finishes what is in flight, and refuses what comes meanwhile', async () => {
    const gateway = await start();
    const sessionId = await newSession(gateway);
    const release = deployment.owner.hold();
    const inFlight = fetch(`${gateway.url}/sessions/${sessionId}/events`, {
      method: 'POST',
      headers: { ...BEARER, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'user_message', text: 'Hello' }),
    });
    await until(async () => (await storedCommands(sessionId)) === 2, 'the command in the log');

    const stopping = gateway.stop();
    const ready = await fetch(`${gateway.url}/health/ready`);
    const live = await fetch(`${gateway.url}/health/live`);
    const refused = await fetch(`${gateway.url}/sessions/${sessionId}`, { headers: BEARER });
    const unauthorized = await fetch(`${gateway.url}/sessions/${sessionId}`);
    release();
    await stopping;

    expect([ready.status, await ready.json()]).toEqual([503, { status: 'draining' }]);
    expect(live.status).toBe(200);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('connection')).toBe('close');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(unauthorized.status).toBe(401);
    expect((await inFlight).status).toBe(201);
  });

  it('takes no longer than its limit', async () => {
    const deps = deployment.deps();
    const gateway = await startAgentGateway({ ...deps, config: { ...deps.config, drainTimeoutMs: 50 } });
    const sessionId = await newSession(gateway);
    const release = deployment.owner.hold();
    const inFlight = fetch(`${gateway.url}/sessions/${sessionId}/events`, {
      method: 'POST',
      headers: { ...BEARER, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'user_message', text: 'Hello' }),
    });
    await until(async () => (await storedCommands(sessionId)) === 2, 'the command in the log');

    const [outcome] = await Promise.all([inFlight.catch(() => 'cut'), gateway.stop()]);
    release();

    expect(outcome).toBe('cut');
  });

  it.each([
    ['of a caller with the key', '/sessions', BEARER],
    ['of a delivery', '/webhooks/triage', { [SIGNATURE_HEADER]: 'sha256=00' }],
  ])('refuses a body that does not arrive, in place of waiting for it: %s', async (_, path, headers) => {
    const bundle = bundleWith({ id: 'triage', autonomous: { webhook: { secret_env: SECRET, header: SIGNATURE_HEADER, prefix: 'sha256=' } } });
    const deps = deployment.deps({ bundle, secretNow: () => WEBHOOK_SECRET, waits: { stopBodyMs: 1, unkeyedBodyMs: NEVER_MS } });
    const gateway = await startAgentGateway({ ...deps, config: { ...deps.config, drainTimeoutMs: NEVER_MS } });
    await gateway.untilReady();
    const head = { ...headers, 'content-type': 'application/json', 'content-length': 100, expect: '100-continue' };
    const sent = request(`${gateway.url}${path}`, { method: 'POST', headers: head });
    const response = once(sent, 'response');
    await once(sent, 'continue');

    await gateway.stop();

    const [reply] = (await response) as [IncomingMessage];
    expect(reply.statusCode).toBe(503);
    expect(reply.headers.connection).toBe('close');
    expect(await json(reply)).toEqual({ error: 'the server is shutting down', code: expect.any(String) });
    sent.destroy();
  });

  async function storedCommands(sessionId: string): Promise<number> {
    const { rows } = await deployment.database.query<{ count: number }>('select count(*)::int as count from bus_log where message_id like $1', [
      `${sessionId}%`,
    ]);
    return rows[0]?.count ?? 0;
  }
});
