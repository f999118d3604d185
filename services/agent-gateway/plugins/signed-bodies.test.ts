import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { type Gateways, gatewaysOf } from '../test-support/gateways.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

/** Bytes sent of a larger announced body. */
const SENT_BYTES = 768 * 1_024;
/** More than fill the budget of keyed requests, too. */
const CLIENTS = 100;

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

function beginDelivery(url: URL): { socket: Socket; isRefused: boolean } {
  const socket = connect(Number(url.port), url.hostname);
  const client = { socket, isRefused: false };
  const refused = () => {
    client.isRefused = true;
  };
  socket.on('data', refused);
  socket.on('error', () => {});
  socket.on('close', refused);
  socket.write(`POST /webhooks/triage HTTP/1.1\r\nHost: gateway\r\nContent-Length: ${limits.bodyBytes}\r\n\r\n`);
  socket.write(Buffer.alloc(SENT_BYTES, ' '));
  return client;
}

it('deliveries whose signature is not known yet use up no bytes of callers with the agent’s key', async () => {
  const webhook = { secret_env: '$' + '{SECRET}', header: 'x-signature' };
  const gateway = await gateways.start({ bundle: bundleWith({ id: 'triage', autonomous: { webhook } }) });
  const clients = Array.from({ length: CLIENTS }, () => beginDelivery(new URL(gateway.url)));
  const mostHeld = Math.floor(limits.bufferedSignedBytes / SENT_BYTES);

  await expect.poll(() => clients.filter(({ isRefused }) => isRefused).length, { timeout: 60_000 }).toBeGreaterThanOrEqual(CLIENTS - mostHeld);
  expect(clients.filter(({ isRefused }) => !isRefused).length).toBeGreaterThan(mostHeld / 2);
  const headers = { ...BEARER, 'content-type': 'application/json' };
  const body = JSON.stringify({ metadata: { text: 'x'.repeat(100_000) } });
  expect((await fetch(`${gateway.url}/sessions`, { method: 'POST', headers, body })).status).toBe(201);
  for (const { socket } of clients) socket.destroy();
}, 120_000);
