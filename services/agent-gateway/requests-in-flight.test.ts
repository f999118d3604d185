import { connect } from 'node:net';
import fastify from 'fastify';
import { expect, it } from 'vitest';
import { closeWaitingResponses } from '#shared/http-server/waiting-responses.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { until } from './test-support/until.ts';

it('does not count a client that disconnected while another hook was busy', async () => {
  const app = fastify();
  closeWaitingResponses(app, null);
  let admit = () => {};
  const busy = new Promise<void>((resolve) => {
    admit = resolve;
  });
  let come = 0;
  app.addHook('onRequest', async () => {
    come += 1;
    await busy;
  });
  const inFlight = new RequestsInFlight();
  inFlight.follow(app);
  let served = 0;
  app.get('/', async (_request, reply) => {
    served += 1;
    return reply.raw.destroyed;
  });
  let closed = 0;
  app.server.on('connection', (socket) => socket.once('close', () => (closed += 1)));
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(3));
  await until(() => come === 3, 'the requests');

  socket.destroy();
  await until(() => closed === 1, 'the end of the connection');
  admit();
  await until(() => served === 3, 'the routes');

  let isNone = false;
  void inFlight.whenIdle(600_000).then(() => {
    isNone = true;
  });
  await until(() => isNone, 'no request in flight');
  expect(isNone).toBe(true);
  await app.close();
});
