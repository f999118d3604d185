import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, it } from 'vitest';
import { silentLog } from '../../telemetry/log.ts';
import { cacheConformance } from '../conformance.ts';
import { openRedis } from './open-redis.ts';

cacheConformance('redis', async () => {
  const cache = await openRedis({ url: inject('redisUrl'), log: silentLog, keyPrefix: `test-${randomUUID()}:` });
  return { cache, advance: (ms) => delay(ms), close: () => cache.close() };
});

it.each([
  ['no URL at all', 'redis'],
  ['another protocol', 'http://:secret@127.0.0.1:6379'],
  ['no host', 'redis:///1'],
  ['a database that is no number', 'redis://:secret@127.0.0.1/sessions'],
  ['parameters, which would do nothing', 'redis://:secret@127.0.0.1?family=6'],
  ['a password that is not written as a URL asks for', 'redis://:secret%zz@127.0.0.1'],
])('refuses a URL with %s, and does not repeat it', async (_, url) => {
  const opening = openRedis({ url, log: silentLog });

  await expect(opening).rejects.toMatchObject({ code: 'config.invalid', message: expect.not.stringContaining('secret') });
});

it('separates the entries of two deployments in one Redis, and of two databases of one deployment', async () => {
  const keyPrefix = `test-${randomUUID()}:`;
  const [one, other, elsewhere] = await Promise.all([
    openRedis({ url: inject('redisUrl'), log: silentLog, keyPrefix }),
    openRedis({ url: inject('redisUrl'), log: silentLog, keyPrefix: `${keyPrefix}other:` }),
    openRedis({ url: `${inject('redisUrl')}/1`, log: silentLog, keyPrefix }),
  ]);
  await one.set('key', 'value', 60_000);
  await one.acquireSlot('slots', 'me', 1, 60_000);

  expect([await one.get('key'), await other.get('key'), await elsewhere.get('key')]).toEqual(['value', null, null]);
  expect([await other.acquireSlot('slots', 'you', 1, 60_000), await elsewhere.acquireSlot('slots', 'you', 1, 60_000)]).toEqual([true, true]);
  await Promise.all([one.close(), other.close(), elsewhere.close()]);
});

it('assigns two processes together no more slots than one, and counts for both', async () => {
  const keyPrefix = `test-${randomUUID()}:`;
  const caches = await Promise.all(Array.from({ length: 4 }, () => openRedis({ url: inject('redisUrl'), log: silentLog, keyPrefix })));

  const taken = await Promise.all(Array.from({ length: 40 }, (_, index) => caches[index % 4]?.acquireSlot('calls', `call-${index}`, 7, 60_000)));
  const sums = await Promise.all(Array.from({ length: 40 }, (_, index) => caches[index % 4]?.increment('hits', 1, 60_000)));

  expect(taken.filter(Boolean)).toHaveLength(7);
  expect(Math.max(...sums.map(Number))).toBe(40);
  await Promise.all(caches.map((cache) => cache.close()));
});

it('keeps its connection and the reply of a command when the process was busy for longer than a server may be silent', async () => {
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_facts: unknown, message: string) => void warnings.push(message) };
  const cache = await openRedis({ url: inject('redisUrl'), log, keyPrefix: `test-${randomUUID()}:` });
  await cache.set('key', 'value', 60_000);
  const stored = cache.get('key');
  // Behind the write of the command.
  await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_600);

  expect(await stored).toBe('value');
  expect(await cache.get('key')).toBe('value');
  expect(warnings).toEqual([]);
  await cache.close();
});
