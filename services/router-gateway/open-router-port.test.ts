import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openRouterPort } from './open-router-port.ts';
import { startRouterGateway } from './service.ts';
import { environment, HOUSE_SECRET, KEY, testConfig } from './test-support/harness.ts';

let database: Database;
let bus: Bus;
beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterAll(async () => {
  await bus.close();
  await database.close();
});

const headers = { authorization: `Bearer ${KEY}` };
const anyPort = { host: '127.0.0.1', port: 0 };
const deps = () => ({
  config: { ...anyPort, drainTimeoutMs: 1_000 },
  routerConfig: testConfig,
  environment,
  houseSecret: HOUSE_SECRET,
  bus,
  database: null,
  cache: null,
  log: silentLog,
  clock: systemClock,
});

async function open() {
  const port = await openRouterPort(anyPort);
  onTestFinished(() => port.close());
  return port;
}

describe('DESIGN 10: while a router gateway boots, its public port says that the process runs and is not ready', () => {
  it.each([
    ['/health/live', 200, { status: 'ok' }],
    ['/health/ready', 503, { status: 'booting' }],
  ])('GET %s: %i', async (path, status, body) => {
    const { url } = await open();
    const reply = await fetch(url + path);

    expect([reply.status, await reply.json()]).toEqual([status, body]);
    expect(reply.headers.get('x-request-id')).toMatch(/^req_/);
  });

  it.each([
    ['POST', '/api/v1/chat/completions'],
    ['GET', '/api/v1/models'],
    ['GET', '/health'],
  ])('%s %s is refused with 503 and the router’s error body', async (method, path) => {
    const { url } = await open();
    const reply = await fetch(url + path, { method, headers: { ...headers, 'x-request-id': 'mine' } });

    expect(reply.status).toBe(503);
    expect(await reply.json()).toEqual({
      error: {
        code: 503,
        message: 'This gateway is still starting',
        type: 'server',
        param: '',
        metadata: { error_type: 'server', retry_after: 1 },
      },
    });
    expect([reply.headers.get('retry-after'), reply.headers.get('x-request-id')]).toEqual(['1', 'mine']);
  });
});

describe('a gateway that starts on a port that is open', () => {
  it('DESIGN 10: a router gateway serves the connections that were opened while it booted', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const port = await open();
    const live = await ask(`${port.url}/health/live`, agent);
    const before = await ask(`${port.url}/api/v1/models`, agent);
    const gateway = await startRouterGateway(deps(), port);
    onTestFinished(() => gateway.stop());
    const ready = await ask(`${port.url}/health/ready`, agent);
    const after = await ask(`${port.url}/api/v1/models`, agent);

    expect(gateway.url).toBe(port.url);
    expect([live.status, before.status, ready.status, after.status]).toEqual([200, 503, 200, 200]);
    expect([before.from, ready.from, after.from]).toEqual([live.from, live.from, live.from]);
  });

  it('stops as any other, and frees the port', async () => {
    const port = await open();
    const gateway = await startRouterGateway(deps(), port);
    await gateway.stop();

    await expect(fetch(`${port.url}/health/live`)).rejects.toThrow();
  });

  it('closes it when the start fails', async () => {
    const port = await open();

    await expect(startRouterGateway({ ...deps(), environment: {} }, port)).rejects.toMatchObject({ code: 'config.invalid' });
    await expect(fetch(`${port.url}/health/live`)).rejects.toThrow();
  });
});

/** @returns the status, and the local port of the connection */
async function ask(url: string, agent: Agent) {
  const sent = request(url, { agent, headers }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const from = response.socket.localPort;
  response.resume();
  await once(response, 'end');
  return { status: response.statusCode, from };
}
