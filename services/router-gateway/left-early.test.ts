import { request } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { CallerKey, KeyDirectory } from '#shared/keys/caller-key.ts';
import { fileKeys } from '#shared/keys/file-keys.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { environment, testConfig } from './test-support/harness.ts';
import { post } from './test-support/http-client.ts';
import { authorization, CHAT, hello, useGateway } from './test-support/use-gateway.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const gateway = useGateway(async () => {
  const own = await openTestDatabase();
  const bus = await openMemoryBus({ database: own, clock: systemClock });
  return { bus, close: () => bus.close().then(() => own.close()) };
});

/** Ends the look-ups that wait, in order. */
let waiting: (() => void)[];
let closed: number;
let url: string;
beforeEach(async () => {
  waiting = [];
  closed = 0;
  const known = fileKeys(testConfig, environment);
  const find: KeyDirectory['find'] = (hash) => new Promise<CallerKey | null>((resolve) => waiting.push(() => resolve(known.get(hash) ?? null)));
  await gateway.reopen({ keys: { find }, limits: { openCalls: 1 } });
  gateway.opened.app.server.on('request', (_, response) => response.on('close', () => (closed += 1)));
  url = await gateway.opened.app.listen({ port: 0, host: '127.0.0.1' });
});

it.each([
  ['a call', 'POST', CHAT],
  ['a resumed stream', 'GET', '/api/v1/generations/gen-1/stream'],
])('%s whose client leaves while its key is looked up holds no slot', async (_, method, path) => {
  const sent = request(`${url}${path}`, { method, agent: false, headers: { authorization } });
  sent.on('error', () => {}).end();
  await eventually(() => waiting.length).toBe(1);
  sent.destroy();
  await eventually(() => closed).toBe(1);
  waiting.shift()?.();

  const next = post(`${url}${CHAT}`, { ...hello, model: 'none' }, { authorization });
  await eventually(() => waiting.length).toBe(1);
  waiting.shift()?.();
  expect((await next.answer).status).toBe(400);
});
