import { beforeEach, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { routerConfig } from '#shared/config/router-config.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { testConfig } from '../test-support/harness.ts';
import { post } from '../test-support/http-client.ts';
import { authorization, CHAT, hello, useGateway } from '../test-support/use-gateway.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });
const config = routerConfig.parse({ ...testConfig, keys: [{ id: 'one', key: '${KEY_ONE}', limits: { calls_at_once: 1 } }] });
const DETACHED = { authorization, 'x-detach': 'true' };

const gateway = useGateway(async () => {
  const own = await openTestDatabase();
  const bus = await openMemoryBus({ database: own, clock: systemClock });
  return { bus, close: () => bus.close().then(() => own.close()) };
});

let cache: Cache;
/** Slots that were freed, in order. */
let freed: string[];
let url: string;
beforeEach(async () => {
  freed = [];
  const real = memoryCache({ clock: systemClock });
  const releaseSlot: Cache['releaseSlot'] = (key, owner) => {
    freed.push(owner);
    return real.releaseSlot(key, owner);
  };
  cache = new Proxy(real, { get: (target, name: keyof Cache) => (name === 'releaseSlot' ? releaseSlot : target[name].bind(target)) });
  await gateway.reopen({ config, cache });
  url = await gateway.opened.app.listen({ port: 0, host: '127.0.0.1' });
});

async function begin(headers: Record<string, string>, payload: object = { ...hello, stream: true }) {
  const { answer, leave } = post(`${url}${CHAT}`, payload, headers);
  answer.catch(() => {});
  return { leave, held: await gateway.worker.next() };
}

it.each([
  ['streamed', { ...hello, stream: true }],
  ['whole', hello],
])('DESIGN 8: the slot of a detached call (%s) is held after its client has left, until the call ends', async (_, payload) => {
  const { leave, held } = await begin(DETACHED, payload);
  leave();
  held.beat();
  // The gateway learns of the client's leave before it answers this one.
  await eventually(() => gateway.opened.admission.drained(0)).toBe(true);
  expect(freed).toEqual([]);
  expect((await gateway.post(hello)).statusCode).toBe(429);

  if (payload === hello) held.body(200, {});
  else held.frame('done', 1, '[DONE]');
  await eventually(() => freed).toEqual([held.call.callId]);
});

it('the slot of a detached call whose stream has lost a frame is held until the call ends, and it is not aborted', async () => {
  const { held } = await begin(DETACHED);
  held.frame('content', 1, 'Hi');
  held.frame('content', 3, 'there');
  await eventually(() => gateway.opened.log.lines.map(({ message }) => message)).toContain('a stream was ended with an error');
  await eventually(() => gateway.opened.admission.drained(0)).toBe(true);
  expect(freed).toEqual([]);

  held.frame('done', 4, '[DONE]');
  await eventually(() => freed).toEqual([held.call.callId]);
  expect(gateway.worker.aborted).not.toContain(held.call.callId);
});

it('the slot of a call that is not detached is free once its client has left', async () => {
  const { leave, held } = await begin({ authorization });
  leave();
  await eventually(() => freed).toEqual([held.call.callId]);
});

it('the slot of a detached call is free with its response', async () => {
  const { held } = await begin(DETACHED, hello);
  held.body(200, {});
  await eventually(() => freed).toEqual([held.call.callId]);
});

it('a gateway that stops leaves the slot of a detached call to its lease', async () => {
  const { leave, held } = await begin(DETACHED);
  leave();
  await eventually(() => gateway.opened.admission.drained(0)).toBe(true);
  await gateway.reopen({ config, cache });

  expect(freed).toEqual([]);
  expect((await gateway.post(hello)).statusCode).toBe(429);
  held.frame('done', 1, '[DONE]');
});
