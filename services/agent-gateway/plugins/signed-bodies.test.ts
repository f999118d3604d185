import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { limits } from '../limits.ts';
import { bundleWith } from '../test-support/bundle.ts';
import { type Gateways, gatewaysOf } from '../test-support/gateways.ts';
import { SIGNATURE_HEADER, signatureOf, WEBHOOK_SECRET } from '../test-support/signed.ts';
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

const SECRET = '$' + '{SECRET}';
const BUNDLE = bundleWith({ id: 'triage', autonomous: { webhook: { secret_env: SECRET, header: SIGNATURE_HEADER, prefix: 'sha256=' } } });
const JSON_TYPE = 'Content-Type: application/json\r\n';
const UNVERIFIED = `${SIGNATURE_HEADER}: sha256=00\r\n`;

interface Client {
  socket: Socket;
  readonly received: string;
  readonly isRefused: boolean;
}

function begin(url: URL, path: string, headers: string, sentBytes = SENT_BYTES, method = 'POST'): Client {
  const socket = connect(Number(url.port), url.hostname);
  const client = { socket, received: '', isRefused: false };
  socket.setEncoding('latin1').on('data', (text: string) => {
    client.received += text;
    client.isRefused = true;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    client.isRefused = true;
  });
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: gateway\r\n${headers}Content-Length: ${limits.bodyBytes}\r\n\r\n`);
  socket.write(Buffer.alloc(sentBytes, ' '));
  return client;
}

const start = (waits = {}) => gateways.start({ bundle: BUNDLE, waits, secretNow: (reference) => (reference === SECRET ? WEBHOOK_SECRET : null) });

it.each([
  ['deliveries whose signature is not known yet', '/webhooks/triage', UNVERIFIED],
  ['logins', '/auth/login', JSON_TYPE],
])(
  '%s use up no bytes of callers with the agent’s key, and give way to signed deliveries, the oldest first',
  async (_, path, headers) => {
    const gateway = await start({ unkeyedBodyMs: 600_000 });
    const clients = Array.from({ length: CLIENTS }, () => begin(new URL(gateway.url), path, headers));
    const mostHeld = Math.floor(limits.bufferedUnkeyedBytes / SENT_BYTES);

    await expect.poll(() => clients.filter(({ isRefused }) => isRefused).length, { timeout: 60_000 }).toBeGreaterThanOrEqual(CLIENTS - mostHeld);
    expect(clients.filter(({ isRefused }) => !isRefused).length).toBeGreaterThan(mostHeld / 2);
    const body = JSON.stringify({ metadata: { text: 'x'.repeat(100_000) } });
    expect((await fetch(`${gateway.url}/sessions`, { method: 'POST', headers: { ...BEARER, 'content-type': 'application/json' }, body })).status).toBe(201);
    const large = JSON.stringify({ path, claim: 'x'.repeat(limits.bodyBytes - 100) });
    const signed = { [SIGNATURE_HEADER]: `sha256=${signatureOf(large)}` };
    expect((await fetch(`${gateway.url}/webhooks/triage`, { method: 'POST', headers: signed, body: large })).status).toBe(202);
    for (const { socket } of clients) socket.destroy();
  },
  120_000,
);

it.each([
  ['without a signature is refused before its body is read', {}, '', /^HTTP\/1\.1 401 /],
  ['has little time for its body', { unkeyedBodyMs: 1 }, UNVERIFIED, /^HTTP\/1\.1 408 [\s\S]*"code":"timeout"/],
])('a delivery %s', async (_, waits, headers, answer) => {
  const gateway = await start(waits);
  const client = begin(new URL(gateway.url), '/webhooks/triage', headers, 1);

  await expect.poll(() => client.received, { timeout: 60_000 }).toMatch(answer);
  client.socket.destroy();
});

it.each([
  ['PUT', '/webhooks/triage', JSON_TYPE, /^HTTP\/1\.1 405 [\s\S]*this address takes POST, not PUT/],
  ['DELETE', '/auth/login', JSON_TYPE, /^HTTP\/1\.1 405 [\s\S]*this address takes GET, POST, not DELETE/],
  ['POST', '/health', JSON_TYPE, /^HTTP\/1\.1 405 [\s\S]*this address takes GET, not POST/],
  ['POST', '/nothing', `${JSON_TYPE}Authorization: ${BEARER.authorization}\r\n`, /^HTTP\/1\.1 404 [\s\S]*there is nothing at this address/],
])('a request that no route takes is refused before its body is read: %s %s', async (method, path, headers, answer) => {
  const gateway = await start({ unkeyedBodyMs: 600_000 });
  const client = begin(new URL(gateway.url), path, headers, 1, method);

  await expect.poll(() => client.received, { timeout: 60_000 }).toMatch(answer);
  client.socket.destroy();
});
