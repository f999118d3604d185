import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { StartLimiter } from './start-limiter.ts';

/** Beginnings of which each takes a time, at once or behind a promise. */
function limited({ atOnceMs = 0, laterMs = 0 }) {
  let nowMs = 0;
  const begun: number[] = [];
  const emptied: number[] = [];
  const limiter = new StartLimiter({ nowMs: () => nowMs, onEmpty: () => emptied.push(begun.length) });
  const run = (number: number) =>
    limiter.run(() => {
      begun.push(number);
      nowMs += atOnceMs;
      void Promise.resolve().then(() => {
        nowMs += laterMs;
      });
    });
  return { begun, emptied, run };
}

/** How many were begun by the end of each tick, until all were. */
async function begunPerTick(begun: readonly number[], all: number) {
  const counts: number[] = [];
  while (begun.length < all) {
    const before = begun.length;
    await nextTick();
    counts.push(begun.length - before);
  }
  return counts;
}

describe('items that come at once', () => {
  it('are begun at once while they are few', () => {
    const { begun, run } = limited({ atOnceMs: 1 });
    for (let number = 0; number < 10; number += 1) run(number);
    expect(begun).toHaveLength(10);
  });

  it.each([
    ['synchronously', { atOnceMs: 5 }, 5],
    ['in promises', { laterMs: 5 }, 17],
  ])('DESIGN 6: are begun over several ticks of the event loop, in order, if their work is done %s', async (_how, times, most) => {
    const { begun, run } = limited(times);
    for (let number = 0; number < 60; number += 1) run(number);
    const counts = await begunPerTick(begun, 60);

    expect(begun).toEqual(Array.from({ length: 60 }, (_, number) => number));
    expect(counts.length).toBeGreaterThan(2);
    expect(Math.max(...counts)).toBeLessThanOrEqual(most);
  });

  it('are all begun in one tick if they cost nothing', async () => {
    const { begun, run } = limited({});
    for (let number = 0; number < 300; number += 1) run(number);
    await nextTick();
    expect(begun).toHaveLength(300);
  });

  it('do not overtake those that wait', async () => {
    const { begun, run } = limited({ atOnceMs: 15 });
    for (let number = 0; number < 4; number += 1) run(number);
    await nextTick();
    run(4);
    await begunPerTick(begun, 5);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it('are reported once the last of them that waited has begun, and not where none waits', async () => {
    const { begun, emptied, run } = limited({ atOnceMs: 15 });
    run(0);
    await nextTick();
    expect(emptied).toEqual([]);
    for (let number = 1; number < 5; number += 1) run(number);
    await begunPerTick(begun, 5);
    expect(emptied).toEqual([5]);
  });
});
