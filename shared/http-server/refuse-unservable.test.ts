import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { errorCatalogue } from '../errors/switchyard-error.ts';
import { openMetrics } from '../telemetry/open-metrics.ts';
import { seriesOf } from '../telemetry/series-of.ts';
import { TUNNEL_REQUEST } from './broken-requests.ts';
import { followRequests } from './follow-requests.ts';
import { refuseUnservable } from './refuse-unservable.ts';

const metrics = openMetrics();

async function openServer() {
  const app = fastify({ http: { requireHostHeader: false }, genReqId: () => 'req_1' });
  onTestFinished(() => app.close());
  followRequests(app, { server: 'agent', metrics });
  refuseUnservable(app, {
    errors: { replyTo: ({ code, message }) => ({ status: errorCatalogue[code].status, headers: {}, body: { error: message } }) },
    brokenRequests: {
      byCode: { [TUNNEL_REQUEST]: { status: 400, body: { error: 'no tunnels' } } },
      otherwise: { status: 400, body: { error: 'no HTTP' } },
      contentType: 'application/json',
    },
  });
  app.setErrorHandler(() => 'the precedence of errors');
  app.get('/', async () => 'served');
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const send = (request: string) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(request);
    return text(socket);
  };
  return { server: app.server, send };
}

it.each([
  ['without Host', 'GET / HTTP/1.1\r\n\r\n', 'a request of HTTP/1.1 must have a Host header'],
  ['with another expectation', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: other\r\n\r\n', 'Expect can be 100-continue only'],
])('refuses a request %s, with its id, without the handler of errors, and counts it', async (_, request, error) => {
  const { send } = await openServer();
  const series = '{server="agent",method="GET",route="/",status="400"} ';
  const counted = async () =>
    Number(
      seriesOf(await metrics.text(), 'switchyard_http_requests_total')
        .find((one) => one.startsWith(series))
        ?.slice(series.length) ?? 0,
    );
  const before = await counted();

  const [head = '', body = ''] = (await send(request)).split('\r\n\r\n');

  expect(head).toMatch(/^HTTP\/1\.1 400 /);
  expect(head).toContain('x-request-id: req_1');
  expect(head).toContain('connection: close');
  expect(JSON.parse(body)).toEqual({ error });
  await expect.poll(counted, { timeout: 60_000, interval: 5 }).toBe(before + 1);
});

it('serves what has a Host and the known expectation', async () => {
  const { send } = await openServer();

  expect(await send('GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n')).toContain('served');
  expect(await send('GET / HTTP/1.0\r\n\r\n')).toContain('served');
});

it('refuses CONNECT, and goes on when its connection is reset', async () => {
  const { server, send } = await openServer();
  const connected = once(server, 'connect');
  const reply = send('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n');
  const [, socket] = await connected;

  expect(() => socket.emit('error', new Error('reset'))).not.toThrow();
  expect(await reply).toMatch(/^HTTP\/1\.1 400 [\s\S]*no tunnels/);
});
