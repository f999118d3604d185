import { expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import type { Cache } from '../storage/cache.ts';
import { memoryCache } from '../storage/memory/memory-cache.ts';
import { SlotLeases } from './slot-leases.ts';

/** Shorter than a lease, after which any slot is free. */
const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 10_000, interval: 5 });

/** Counts what is acquired; `gate` delays the answers. */
function watchedCache(): { cache: Cache; acquired: string[]; gate: { open: Promise<void> } } {
  const real = memoryCache({ clock: systemClock });
  const acquired: string[] = [];
  const gate = { open: Promise.resolve() };
  const cache = new Proxy(real, {
    get(target, name: keyof Cache) {
      if (name !== 'acquireSlot') return target[name].bind(target);
      return async (...args: Parameters<Cache['acquireSlot']>) => {
        acquired.push(args[1]);
        await gate.open;
        return target.acquireSlot(...args);
      };
    },
  });
  return { cache, acquired, gate };
}

it('extends the slots of calls that live, and of no others', async () => {
  const { cache, acquired } = watchedCache();
  const slots = new SlotLeases(cache, 5);
  expect([await slots.acquire('k', 'one', 2), await slots.acquire('k', 'two', 2), await slots.acquire('k', 'three', 2)]).toEqual([true, true, false]);
  slots.release('k', 'two');
  const before = acquired.length;
  await eventually(() => acquired.length).toBeGreaterThan(before + 3);
  expect(new Set(acquired.slice(before))).toEqual(new Set(['one']));
  expect(await slots.acquire('k', 'four', 2)).toBe(true);
  slots.stop();
});

it('frees a slot whose call ended before the cache had given it', async () => {
  const { cache, gate } = watchedCache();
  const slots = new SlotLeases(cache);
  let answer = () => {};
  gate.open = new Promise((resolve) => {
    answer = resolve;
  });
  const acquiring = slots.acquire('k', 'one', 1);
  slots.release('k', 'one');
  answer();
  await acquiring;
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
  slots.stop();
});

it('frees all slots when the gateway stops', async () => {
  const { cache } = watchedCache();
  const slots = new SlotLeases(cache);
  await slots.acquire('k', 'one', 1);
  slots.stop();
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
});
