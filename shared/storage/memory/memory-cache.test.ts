import { expect, it, vi } from 'vitest';
import { cacheConformance } from '../conformance.ts';
import { memoryCache } from './memory-cache.ts';

cacheConformance('memory', async () => {
  const clock = fakeClock();
  const cache = memoryCache({ clock });
  return { cache, advance: async (ms) => clock.advance(ms), close: () => cache.close() };
});

function fakeClock() {
  let atMs = 1_700_000_000_000;
  return {
    nowMs: () => atMs,
    advance: (ms: number) => {
      atMs += ms;
    },
  };
}

it('lets entries expire in time though the clock is set back by an hour meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  try {
    const cache = memoryCache();
    await cache.set('key', 'value', 1_000);
    vi.setSystemTime(Date.now() - 3_600_000);
    vi.advanceTimersByTime(999);
    expect(await cache.get('key')).toBe('value');
    vi.advanceTimersByTime(1);
    expect(await cache.get('key')).toBeNull();
  } finally {
    vi.useRealTimers();
  }
});

it('evicts the entry that would expire first when it is full', async () => {
  const cache = memoryCache({ clock: fakeClock(), maxEntries: 3 });
  await cache.set('middle', 'value', 2_000);
  await cache.set('first', 'value', 1_000);
  await cache.set('last', 'value', 3_000);

  await cache.set('new', 'value', 500);

  expect(await Promise.all(['first', 'middle', 'last', 'new'].map((key) => cache.get(key)))).toEqual([null, 'value', 'value', 'value']);
});

it('does not evict a prolonged entry because of its first time to live', async () => {
  const cache = memoryCache({ clock: fakeClock(), maxEntries: 2 });
  await cache.set('prolonged', 'value', 1_000);
  await cache.set('other', 'value', 2_000);
  await cache.set('prolonged', 'value', 3_000);

  await cache.set('new', 'value', 4_000);

  expect(await Promise.all(['prolonged', 'other', 'new'].map((key) => cache.get(key)))).toEqual(['value', null, 'value']);
});

it('holds its limit and its order over many random entries', async () => {
  const clock = fakeClock();
  const cache = memoryCache({ clock, maxEntries: 50 });
  const random = lcg(7);
  const expected = new Map<string, number>();
  for (let step = 0; step < 5_000; step += 1) {
    const key = `key-${Math.floor(random() * 200)}`;
    // Fractions keep entries from expiring in the same instant, where the order of eviction is undefined.
    const expiresAtMs = clock.nowMs() + 1 + random() * 1_000_000;
    if (!expected.has(key) && expected.size === 50) expected.delete(soonest(expected));
    expected.set(key, expiresAtMs);
    await cache.set(key, 'value', expiresAtMs - clock.nowMs());
  }

  const held: string[] = [];
  for (let index = 0; index < 200; index += 1) if ((await cache.get(`key-${index}`)) !== null) held.push(`key-${index}`);

  expect(held.sort()).toEqual([...expected.keys()].sort());
});

function soonest(entries: Map<string, number>): string {
  const [first] = [...entries].sort(([, a], [, b]) => a - b);
  return first?.[0] ?? '';
}

/** A seeded generator of numbers from 0 to 1. */
function lcg(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
