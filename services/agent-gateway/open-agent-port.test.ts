import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openAgentPort } from './open-agent-port.ts';
import { startAgentGateway } from './service.ts';
import { bundleWith } from './test-support/bundle.ts';
import { BEARER, openTestDeployment, type TestDeployment } from './test-support/test-deployment.ts';
import { until } from './test-support/until.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());

const anyPort = { host: '127.0.0.1', port: 0 };

async function open() {
  const port = await openAgentPort(anyPort);
  onTestFinished(() => port.close());
  return port;
}

describe('DESIGN 10: while an agent gateway boots, its public port says that the process runs and is not ready', () => {
  it.each([
    ['GET', '/health/live', 200, { status: 'ok', service: 'agent-server' }],
    ['GET', '/health/ready', 503, { status: 'booting' }],
    ['GET', '/health', 503, { status: 'booting' }],
  ])('%s %s: %i', async (method, path, status, body) => {
    const { url } = await open();
    const reply = await fetch(url + path, { method });

    expect([reply.status, await reply.json()]).toEqual([status, body]);
    expect(reply.headers.get('x-request-id')).toMatch(/^req_/);
  });

  it.each([
    ['POST', '/routines/answer/trigger'],
    ['POST', '/sessions'],
    ['GET', '/sessions/s-1/events'],
    ['GET', '/nothing'],
  ])('%s %s is refused with 503 in the form of all other refusals', async (method, path) => {
    const { url } = await open();
    const reply = await fetch(url + path, { method, headers: { ...BEARER, 'x-request-id': 'mine' } });

    expect([reply.status, await reply.json()]).toEqual([503, { error: 'the server is still starting', code: 'not_ready' }]);
    expect([reply.headers.get('retry-after'), reply.headers.get('x-request-id')]).toEqual(['1', 'mine']);
  });

  it('a refusal is that of a serving gateway that is not ready', async () => {
    const app = deployment.app({ bus: { ...deployment.bus, isReady: () => false } });
    const [later, { url }] = [await app.inject({ url: '/sessions/s-1', headers: BEARER }), await open()];
    const reply = await fetch(`${url}/sessions/s-1`, { headers: BEARER });

    expect([reply.status, await reply.json()]).toEqual([later.statusCode, later.json()]);
    for (const name of ['retry-after', 'content-type']) expect(reply.headers.get(name)).toBe(later.headers[name]);
    await deployment.closeApps();
  });

  it('bytes that are not HTTP are answered in the form of all other refusals', async () => {
    const { url } = await open();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
    });
    socket.end('NONSENSE\r\n\r\n');
    await once(socket, 'close');

    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toEqual({ error: expect.any(String), code: 'validation_failed' });
  });
});

describe('a gateway that starts on a port that is open', () => {
  it('DESIGN 10: an agent gateway serves the connections that were opened while it booted', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const port = await open();
    const live = await ask(`${port.url}/health/live`, agent);
    const before = await ask(`${port.url}/sessions/none`, agent);
    const gateway = await startAgentGateway(deployment.deps(), port);
    onTestFinished(() => gateway.stop());
    await until(async () => (await ask(`${port.url}/health/ready`, agent)).status === 200, 'readiness');
    const after = await ask(`${port.url}/sessions/none`, agent);

    expect(gateway.url).toBe(port.url);
    expect([live.status, before.status, after.status]).toEqual([200, 503, 404]);
    expect([before.from, after.from]).toEqual([live.from, live.from]);
  });

  it('stops as any other, and frees the port', async () => {
    const port = await open();
    const idle = connect(Number(new URL(port.url).port), '127.0.0.1').on('error', () => {});
    await once(idle, 'connect');
    idle.resume();
    const closed = once(idle, 'close');
    const gateway = await startAgentGateway(deployment.deps(), port);
    await Promise.all([gateway.stop(), closed]);

    await expect(fetch(`${port.url}/health/live`)).rejects.toThrow();
  });

  it('closes it when the start fails', async () => {
    const port = await open();
    const deps = deployment.deps({ bundle: bundleWith({ id: 'open' }) });
    const config = { ...deps.config, runs: { ...deps.config.runs, requireCallbackAllowlist: true } };

    await expect(startAgentGateway({ ...deps, config }, port)).rejects.toMatchObject({ code: 'config.invalid' });
    await expect(fetch(`${port.url}/health/live`)).rejects.toThrow();
  });
});

/** @returns the status, and the local port of the connection */
async function ask(url: string, agent: Agent) {
  const sent = request(url, { agent, headers: BEARER }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const from = response.socket.localPort;
  response.resume();
  await once(response, 'end');
  return { status: response.statusCode, from };
}
