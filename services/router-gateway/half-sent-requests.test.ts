import { connect, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { GatewayLimits } from './limits.ts';
import { post } from './test-support/http-client.ts';
import { authorization, CHAT, hello, useGateway } from './test-support/use-gateway.ts';

// A bound for a busy machine: none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const EXCHANGE = '/api/v1/auth/keys';
const BODY = JSON.stringify(hello);

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

let sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
});

interface HalfSent {
  socket: Socket;
  readonly received: string;
  readonly isClosed: boolean;
}

/** With a limit of calls, and how many of these requests the app has begun to read. */
async function listen(limits: Partial<GatewayLimits>) {
  await gateway.reopen({ limits });
  const { app } = gateway.opened;
  let begun = 0;
  app.addHook('preParsing', (_request, _reply, payload, done) => {
    begun += 1;
    done(null, payload);
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const send = (request: string): HalfSent => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    sockets.push(socket);
    const state = { socket, received: '', isClosed: false };
    socket.setEncoding('latin1').on('data', (text: string) => {
      state.received += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      state.isClosed = true;
    });
    socket.write(request);
    return state;
  };
  const halfSent = (address: string, type: string, headers = '') =>
    send(`${address} HTTP/1.1\r\nHost: gateway\r\nContent-Type: ${type}\r\n${headers}Content-Length: ${BODY.length}\r\n\r\n${BODY[0]}`);
  const begin = async (path: string, type: string, headers = ''): Promise<HalfSent> => {
    const before = begun;
    const state = halfSent(`POST ${path}`, type, headers);
    await eventually(() => begun).toBe(before + 1);
    return state;
  };
  return {
    url,
    begun: () => begun,
    send,
    halfSent,
    call: () => post(`${url}${CHAT}`, hello, { authorization }).answer,
    beginCall: () => begin(CHAT, 'application/json', `Authorization: ${authorization}\r\n`),
    beginPublic: (path = EXCHANGE, type = 'application/json') => begin(path, type),
  };
}

it('DESIGN 13: requests whose bodies have not arrived, with a key or without, take no place of calls, and their own is counted once it has', async () => {
  const { call, beginCall, beginPublic } = await listen({ openCalls: 1 });
  const [half] = [await beginCall(), await beginCall(), await beginPublic(), await beginPublic('/auth', 'application/x-www-form-urlencoded')];

  const calling = call();
  const held = await gateway.worker.next();
  half.socket.write(BODY.slice(1));
  await eventually(() => half.received).toContain('this gateway already has 1 open calls');
  held.body(200, {});
  expect((await calling).status).toBe(200);
});

it('without a key give way to newer ones, the oldest first', async () => {
  const { url, beginPublic } = await listen({ publicRequests: 2 });
  const [oldest, second] = [await beginPublic(), await beginPublic('/auth', 'application/x-www-form-urlencoded')];

  const whole = await post(`${url}${EXCHANGE}`, {}, {}).answer;
  await whole.ended;

  expect(whole.status).toBe(400);
  await eventually(() => oldest.isClosed).toBe(true);
  expect(oldest.received).toMatch(/^HTTP\/1\.1 503 [\s\S]*this gateway already has 2 open requests without a key/);
  expect(second.received).toBe('');
  const third = await beginPublic();
  await beginPublic();
  await eventually(() => second.received).toMatch(/^HTTP\/1\.1 503 /);
  expect(third.received).toBe('');
});

it.each([
  [EXCHANGE, 'application/json'],
  ['/auth', 'application/x-www-form-urlencoded'],
])('without a key have little time: POST %s', async (path, type) => {
  const { beginPublic } = await listen({ publicBodyMs: 1 });
  const late = await beginPublic(path, type);

  await eventually(() => late.isClosed).toBe(true);
  expect(late.received).toMatch(/^HTTP\/1\.1 408 [\s\S]*The request was not received in time/);
});

it.each([
  ['POST /nothing', 404, 'There is nothing at /nothing'],
  ['PUT /console', 405, '/console does not support PUT'],
  ['POST /health/live', 405, '/health/live does not support POST'],
  [`PUT ${CHAT}`, 405, `${CHAT} does not support PUT`],
])('that no route takes are refused before their bodies are read: %s', async (address, status, message) => {
  const { begun, halfSent } = await listen({});
  const half = halfSent(address, 'application/json');

  await eventually(() => half.received).toContain(message);
  expect(half.received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(begun()).toBe(0);
});

it('without a key take no place once they are answered, though their responses wait behind one that does not end', async () => {
  const { url, begun, send } = await listen({ publicRequests: 2 });
  const get = 'GET /auth?callback_url=https://app.example.com HTTP/1.1\r\nHost: gateway\r\n\r\n';
  const head = `POST ${CHAT} HTTP/1.1\r\nHost: gateway\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}`;
  const client = send(`${head}\r\n\r\n${BODY}${get.repeat(2)}`);
  const held = await gateway.worker.next();
  await eventually(begun).toBe(3);

  await eventually(async () => (await post(`${url}${EXCHANGE}`, {}, {}).answer).status).toBe(400);
  expect(client.received).toBe('');
  held.body(200, {});
  await eventually(() => client.received.match(/HTTP\/1\.1 \d+/g)).toHaveLength(3);
});
