import { expect, it, vi } from 'vitest';
import type { Cache } from '../storage/cache.ts';
import { memoryCache } from '../storage/memory/memory-cache.ts';
import { SlotLeases } from './slot-leases.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });

/** Counts what is extended; `gate` delays the answers of acquisitions. Its clock does not advance: no lease ends, after which any slot is free. */
function watchedCache(): { cache: Cache; extended: string[][]; gate: { open: Promise<void> } } {
  const real = memoryCache({ clock: { nowMs: () => 0 } });
  const extended: string[][] = [];
  const gate = { open: Promise.resolve() };
  const cache = new Proxy(real, {
    get(target, name: keyof Cache) {
      if (name === 'extendSlots')
        return async (...args: Parameters<Cache['extendSlots']>) => {
          extended.push([...args[1]]);
          await target.extendSlots(...args);
        };
      if (name !== 'acquireSlot') return target[name].bind(target);
      return async (...args: Parameters<Cache['acquireSlot']>) => {
        await gate.open;
        return target.acquireSlot(...args);
      };
    },
  });
  return { cache, extended, gate };
}

it('extends the slots of calls that live, and of no others, with one command per key', async () => {
  const { cache, extended } = watchedCache();
  const slots = new SlotLeases(cache, 5);
  const [one, two, three] = [slots.acquire('k', 'one', 2), slots.acquire('k', 'two', 2), slots.acquire('k', 'three', 2)];
  expect(await Promise.all([one, two, three].map(({ acquired }) => acquired))).toEqual([true, true, false]);
  expect(await slots.acquire('other', 'five', 1).acquired).toBe(true);
  two.release();
  const six = slots.acquire('k', 'six', 2);
  await six.acquired;
  const before = extended.length;
  await eventually(() => extended.length).toBeGreaterThan(before + 3);
  expect(new Set(extended.slice(before).map((calls) => calls.join(' ')))).toEqual(new Set(['one six', 'five']));
  six.release();
  expect(await slots.acquire('k', 'four', 2).acquired).toBe(true);
  slots.stop();
});

it('frees a slot whose call ended before the cache had given it', async () => {
  const { cache, gate } = watchedCache();
  const slots = new SlotLeases(cache);
  let answer = () => {};
  gate.open = new Promise((resolve) => {
    answer = resolve;
  });
  const one = slots.acquire('k', 'one', 1);
  one.release();
  answer();
  await one.acquired;
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
  slots.stop();
});

it('frees all slots when the gateway stops', async () => {
  const { cache } = watchedCache();
  const slots = new SlotLeases(cache);
  await slots.acquire('k', 'one', 1).acquired;
  slots.stop();
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
});

it('extends and frees the slot of a call that was delivered again when its first delivery has left', async () => {
  const { cache, extended } = watchedCache();
  const slots = new SlotLeases(cache, 5);
  const [first, second] = [slots.acquire('k', 'one', 1), slots.acquire('k', 'one', 1)];
  expect([await first.acquired, await second.acquired]).toEqual([true, true]);
  first.leave();
  const before = extended.length;
  await eventually(() => extended.length).toBeGreaterThan(before);
  second.release();
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
  slots.stop();
});

it('frees the slot of a call that was delivered again when its first delivery, which has lost its lease, ends last', async () => {
  const { cache } = watchedCache();
  const slots = new SlotLeases(cache);
  const [first, second] = [slots.acquire('k', 'one', 1), slots.acquire('k', 'one', 1)];
  expect([await first.acquired, await second.acquired]).toEqual([true, true]);
  second.release();
  // An end counts once.
  second.release();
  second.leave();
  expect(await cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(false);
  first.leave();
  await eventually(() => cache.acquireSlot('rate:slots:k', 'two', 1, 60_000)).toBe(true);
  slots.stop();
});

it('has no timer while it holds no slot', async () => {
  const { cache } = watchedCache();
  await cache.acquireSlot('rate:slots:k', 'other', 1, 60_000);
  vi.useFakeTimers();
  try {
    const slots = new SlotLeases(cache);
    expect(await slots.acquire('k', 'one', 1).acquired).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
