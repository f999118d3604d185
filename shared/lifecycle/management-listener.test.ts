import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openManagementListener } from './management-listener.ts';
import { Readiness } from './readiness.ts';

const metrics = { contentType: 'text/plain; version=0.0.4', text: async () => 'switchyard_fences_total 0\n' };

async function open(readiness = new Readiness(), port = 0) {
  const listener = await openManagementListener({ host: '127.0.0.1', port, readiness, metrics });
  onTestFinished(() => listener.stop());
  return listener;
}

it('names the setting when its port is taken', async () => {
  const { url } = await open();

  await expect(openManagementListener({ host: '127.0.0.1', port: Number(new URL(url).port), readiness: new Readiness(), metrics })).rejects.toMatchObject({
    code: 'service.port_taken',
    message: expect.stringContaining('MANAGEMENT_PORT'),
  });
});

it('names the setting when its host is no address of this machine', async () => {
  const opened = openManagementListener({ host: '192.0.2.1', port: 0, readiness: new Readiness(), metrics });

  await expect(opened).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('Set MANAGEMENT_HOST to') });
});

it.each([
  ['POST', '/metrics'],
  ['GET', '/metrics/all'],
  ['GET', '/'],
  ['POST', '/ready'],
])('has nothing for %s %s', async (method, path) => {
  const { url } = await open();

  expect((await fetch(`${url}${path}`, { method })).status).toBe(404);
});

it('is live from the beginning, and ready once the process is', async () => {
  const readiness = new Readiness();
  const { url } = await open(readiness);
  const get = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.json()];
  };

  expect(await get('/live')).toEqual([200, { status: 'ok' }]);
  expect(await get('/ready')).toEqual([503, { status: 'booting', checks: {} }]);
  readiness.booted([{ name: 'bus', isNeeded: true, ask: () => true }]);
  expect(await get('/ready?verbose')).toEqual([200, { status: 'ready', checks: { bus: 'ok' } }]);
  readiness.drain();
  expect(await get('/ready')).toEqual([503, { status: 'draining', checks: { bus: 'ok' } }]);
  expect(await get('/live')).toEqual([200, { status: 'ok' }]);
});

it('DESIGN 2: serves the metrics of its process at /metrics', async () => {
  const { url } = await open();
  const response = await fetch(`${url}/metrics`);

  expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([200, metrics.contentType, await metrics.text()]);
});

it('stops although a client holds a connection open', async () => {
  const listener = await openManagementListener({ host: '127.0.0.1', port: 0, readiness: new Readiness(), metrics });
  const socket = connect(Number(new URL(listener.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.resume();
  const closed = once(socket, 'close');

  await listener.stop();
  await closed;
});
