import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { type Gateways, gatewaysOf } from '../test-support/gateways.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const KIB = 1_024;
const CLIENTS = 400;
/** Bytes sent of a larger announced body. */
const SENT_BYTES = 768 * KIB;

let deployment: TestDeployment;
let gateways: Gateways;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  gateways = gatewaysOf(() => deployment);
});
afterAll(async () => {
  await gateways.stopAll();
  await deployment.close();
});

interface UnfinishedPost {
  socket: Socket;
  received: string;
  isClosed: boolean;
}

function beginPost(url: URL): UnfinishedPost {
  const socket = connect(Number(url.port), url.hostname);
  const client: UnfinishedPost = { socket, received: '', isClosed: false };
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    client.received += text;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    client.isClosed = true;
  });
  const head = ['POST /sessions HTTP/1.1', 'Host: gateway', `Authorization: ${BEARER.authorization}`, 'Content-Type: application/json'];
  socket.write(`${head.join('\r\n')}\r\nContent-Length: ${limits.bodyBytes}\r\n\r\n`);
  socket.write(Buffer.alloc(SENT_BYTES, ' '));
  return client;
}

it('DESIGN 13: the agent gateway counts the bytes of unfinished bodies, refuses those beyond its limit with 503, and counts none of a disconnected client', async () => {
  const gateway = await gateways.start();
  const url = new URL(gateway.url);

  const clients = Array.from({ length: CLIENTS }, () => beginPost(url));
  const mostHeld = Math.floor(limits.bufferedBodyBytes / SENT_BYTES);
  const refused = () => clients.filter(({ received, isClosed }) => received !== '' || isClosed);
  await expect.poll(() => refused().length, { timeout: 60_000 }).toBeGreaterThanOrEqual(CLIENTS - mostHeld);
  // A connection may be reset before it reads the response when its last bytes arrive after it.
  const responses = refused().flatMap(({ received }) => (received === '' ? [] : [received]));
  for (const { socket } of clients) socket.destroy();

  expect(responses).not.toEqual([]);
  expect(responses.filter((response) => !response.startsWith('HTTP/1.1 503 ') || !response.includes('\r\nretry-after: 1\r\n'))).toEqual([]);

  const whole = 'x'.repeat(limits.bodyBytes);
  const postWhole = async () =>
    (await fetch(new URL('/sessions', url), { method: 'POST', headers: { ...BEARER, 'content-type': 'application/json' }, body: whole })).status;
  const nearlyAll = Math.floor(limits.bufferedBodyBytes / limits.bodyBytes) - 1;
  const statuses = async () => new Set(await Promise.all(Array.from({ length: nearlyAll }, postWhole)));
  // Read completely, refused for their content.
  await expect.poll(statuses, { timeout: 60_000 }).toEqual(new Set([400]));
}, 150_000);
