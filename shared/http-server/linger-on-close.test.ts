import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { errorCatalogue } from '../errors/switchyard-error.ts';
import { silentLog } from '../telemetry/log.ts';
import { installErrorReplies } from './error-replies.ts';
import { parseJsonBodies } from './json-bodies.ts';
import { lingerOnClose } from './linger-on-close.ts';

const BODY = Buffer.alloc(10 * 1_024 * 1_024, 'x');
const LENGTH = 100_000_000_000;

async function openServer(): Promise<number> {
  const app = fastify();
  onTestFinished(() => app.close());
  app.decorateRequest('failure', null);
  const errors = {
    replyTo: ({ code, message }: { code: keyof typeof errorCatalogue; message: string }) => ({
      ...{ status: errorCatalogue[code].status, headers: {}, body: { error: message } },
    }),
    ...{ framework: {}, brokenOff: 'broken off', logLevel: () => null },
    unknownRoute: () => {
      throw new Error('every address is known');
    },
  };
  installErrorReplies(app, { errors, log: silentLog });
  parseJsonBodies(app, { limitBytes: 1_024 * 1_024, grew: () => {}, mayBeEmpty: false });
  app.post('/', async () => 'served');
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

it.each([
  ['with its length', `Content-Length: ${BODY.byteLength}\r\n\r\n`, BODY],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n', Buffer.concat([Buffer.from(`${BODY.byteLength.toString(16)}\r\n`), BODY, Buffer.from('\r\n0\r\n\r\n')])],
])('a client that writes a body beyond the limit to its end and then reads gets its response (%s)', async (_, head, body) => {
  const socket = connect(await openServer(), '127.0.0.1').pause();
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${head}`);
  await new Promise<void>((resolve, reject) => socket.write(body, (error) => (error ? reject(error) : resolve())));

  const [reply] = (await text(socket)).split('\r\n');

  expect(reply).toBe('HTTP/1.1 413 Payload Too Large');
});

it('a connection with thousands of refused requests is closed once', async () => {
  const socket = new Socket();
  let closed = 0;
  socket.destroySoon = () => {
    closed += 1;
  };
  for (let n = 0; n < 20_000; n += 1) lingerOnClose({ socket, complete: true } as IncomingMessage);

  socket.destroySoon();

  expect(closed).toBe(1);
});

it.each([
  ['bytes', { forMs: 3_600_000, bytes: 1_000_000 }],
  ['time', { forMs: 1, bytes: Number.POSITIVE_INFINITY }],
])('reads on for limited %s', async (_, limits) => {
  const server = createServer((request, response) => {
    lingerOnClose(request, limits);
    response.writeHead(400, { connection: 'close' }).end('no');
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${LENGTH}\r\n\r\n`);
  const write = () => {
    while (!socket.destroyed && socket.write(BODY.subarray(0, 65_536)));
  };
  socket.on('drain', write);
  write();
  const [connection] = (await once(server, 'connection')) as [Socket];
  if (!connection.destroyed) await once(connection, 'close');
  expect(connection.bytesRead).toBeLessThan(LENGTH);
});
