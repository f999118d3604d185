import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Bus } from '../bus/bus.ts';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { addresses, subjectOf } from '../bus/subjects.ts';
import { environment, KEY, openTestApp, type TestApp } from '../services/router-gateway/test-support/harness.ts';
import { get, post } from '../services/router-gateway/test-support/http-client.ts';
import { startRouterWorker } from '../services/router-worker/service.ts';
import { systemClock } from '../shared/clock.ts';
import { routerConfig } from '../shared/config/router-config.ts';
import { fileKeys } from '../shared/keys/file-keys.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../shared/telemetry/log.ts';

const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });
const authorization = `Bearer ${KEY}`;
const chunkOf = (content: string, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;

let bus: Bus;
/** Of one bus and one worker. */
const gateways: { app: TestApp; url: string }[] = [];
/** The last request to the provider. */
let upstream: ServerResponse;
let close: () => Promise<void>;

beforeAll(async () => {
  const provider = createServer((_, response) => {
    upstream = response;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chunkOf('one '));
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const { port } = provider.address() as AddressInfo;
  const config = routerConfig.parse({
    providers: [{ slug: 'slow', kind: 'openai-compatible', base_url: `http://127.0.0.1:${port}/v1` }],
    models: [{ id: 'a/slow', endpoints: [{ provider: 'slow', upstream_model: 'slow', prices: { prompt: '0', completion: '0' } }] }],
    timeouts: { first_token_ms: 600_000, idle_ms: 600_000 },
    keys: [{ id: 'one', key: '${KEY_ONE}' }],
  });
  const database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
  const deps = { config, environment: {}, bus, database, cache: null, fileKeys: fileKeys(config, environment), log: silentLog, clock: systemClock };
  const worker = await startRouterWorker(deps);
  for (const origin of ['gadmitting', 'gresuming']) {
    const app = openTestApp(bus, { config, variables: environment, database, origin });
    gateways.push({ app, url: `${await app.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1` });
  }
  close = async () => {
    for (const { app } of gateways) await app.close();
    await worker.stop();
    await bus.close();
    provider.closeAllConnections();
    await new Promise((resolve) => provider.close(resolve));
    await database.close();
  };
});
afterAll(() => close());

async function begun(headers: Record<string, string>) {
  const body = { model: 'a/slow', messages: [{ role: 'user', content: 'Hello' }], stream: true };
  const answer = await post(`${gateways[0]?.url}/chat/completions`, body, { authorization, ...headers }).answer;
  await eventually(() => answer.text).toContain('one ');
  const callId = String(answer.headers['x-generation-id']);
  const aborts: string[] = [];
  bus.notices.subscribe(subjectOf(addresses.control, callId), (_, notice) => {
    if (JSON.parse(notice).abort === true) aborts.push(notice);
  });
  return { answer, callId, aborts, from: (url: string, method?: 'HEAD') => get(`${url}/generations/${callId}/stream`, { authorization }, method) };
}

it('DESIGN 7: a call that its client detached goes on when readers that resumed it leave, at its gateway and at another', async () => {
  const { answer, aborts, from } = await begun({ 'x-detach': 'true' });
  answer.leave();
  for (const [index, { app, url }] of gateways.entries()) {
    await eventually(() => app.admission.drained(0)).toBe(true);
    const reader = await from(url);
    await eventually(() => reader.text).toContain('one ');
    reader.leave();
    // Neither gateway knows any more that it is detached.
    await eventually(() => aborts.length).toBe(index + 1);
    const head = await from(url, 'HEAD');
    expect([head.status, await head.ended]).toEqual([200, true]);
    await eventually(() => app.admission.drained(0)).toBe(true);
    expect(aborts).toHaveLength(index + 1);
  }
  upstream.end(`${chunkOf('two', 'stop')}data: [DONE]\n\n`);

  const whole = await from(gateways[1]?.url ?? '');
  expect(await whole.ended).toBe(true);
  for (const part of ['"one "', '"two"', '[DONE]']) expect(whole.text).toContain(part);
  expect(whole.text).not.toContain('error');
});

it.each([
  ['the second', 1],
  ['the first', 0],
])('DESIGN 7: a call that is read at two gateways goes on when %s reader leaves before a heartbeat, and ends with the other', async (_which, leaving) => {
  const { answer, aborts, from } = await begun({});
  const readers = [answer, await from(gateways[1]?.url ?? '')];
  await eventually(() => readers[1]?.text).toContain('one ');
  readers[leaving]?.leave();
  await eventually(() => aborts.length).toBe(1);
  upstream.write(chunkOf('two '));
  const left = readers[1 - leaving];
  await eventually(() => left?.text).toContain('two ');
  expect(left?.text).not.toContain('error');

  left?.leave();
  await eventually(() => upstream.destroyed).toBe(true);
});

it('one that its client did not detach ends with its last reader', async () => {
  const { answer, aborts, from } = await begun({});
  const reader = await from(gateways[0]?.url ?? '');
  await eventually(() => reader.text).toContain('one ');
  answer.leave();
  reader.leave();
  await eventually(() => aborts.length).toBe(1);
  await eventually(() => upstream.destroyed).toBe(true);
});
