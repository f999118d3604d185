import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTick } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { noteText, setUpHeap } from './heap.ts';

const MADE = 2_000_000;
const LONG_TEXT_BYTES = 100_000;
/** Some seconds of a core alone. */
const BUSY_MACHINE_MS = 300_000;

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0;
}

/** Creates objects, `living.length` of them reachable at a time. @returns total growth of the old generation, all growths together */
function makeObjects(make: (n: number) => unknown, living: unknown[]): number {
  let grown = 0;
  let last = oldBytes();
  for (let n = 0; n < MADE; n += 1) {
    living[n % living.length] = make(n);
    if (n % 5_000 > 0) continue;
    const now = oldBytes();
    grown += Math.max(0, now - last);
    last = now;
  }
  return grown;
}

it(
  'short-term objects are not allocated in the old generation, though the same code created long-term ones',
  () => {
    setUpHeap();
    let grown = 0;
    for (let round = 0; round < 4; round += 1) {
      // A new function per round, since V8 learns per call site.
      const make = new Function('n', 'return { n, list: [n, n + 1, n + 2], inner: { n } }') as (n: number) => unknown;
      makeObjects(make, new Array<unknown>(200_000).fill(null));
      grown += makeObjects(make, new Array<unknown>(64).fill(null));
    }

    expect(grown).toBeLessThan(300_000_000);
  },
  BUSY_MACHINE_MS,
);

it(
  'the old generation is collected before it has grown to three times its reachable size',
  () => {
    setUpHeap();
    const living = Array.from({ length: 150_000 }, (_, n) => ({ n, text: `of ${n}`, list: [n, n, n, n, n, n, n, n, n, n] }));
    let most = 0;
    for (let n = 0; n < 6_000_000; n += 1) {
      // Each stays reachable over several collections of the young generation, as a call does.
      living[n % living.length] = { n, text: `of ${n}`, list: [n, n, n, n, n, n, n, n, n, n] };
      if (n % 20_000 === 0 && n > 1_000_000) most = Math.max(most, oldBytes());
    }
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();

    expect(living).toHaveLength(150_000);
    expect(most / oldBytes()).toBeLessThan(3);
  },
  BUSY_MACHINE_MS,
);

it(
  'long texts cost fewer full collections once they are noted',
  async () => {
    setUpHeap();
    const living = Array.from({ length: 150_000 }, (_, n) => ({ n, text: `of ${n}`, list: [n, n, n, n, n, n, n, n, n, n] }));
    const without = await collectionsOf(() => {});
    const noted = await collectionsOf(() => noteText(LONG_TEXT_BYTES));

    expect(living).toHaveLength(150_000);
    expect(noted).toBeLessThan(without / 1.5);
  },
  BUSY_MACHINE_MS,
);

/** Full collections while long texts come in buffers, eight at a time. */
async function collectionsOf(onText: () => void): Promise<number> {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail }: { detail?: { kind?: number } } = entry.toJSON();
      if (detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections += 1;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  const inFlight: Buffer[] = [];
  for (let n = 0; n < 8_000; n += 1) {
    onText();
    inFlight[n % 8] = Buffer.alloc(LONG_TEXT_BYTES, 'a');
    inFlight[n % 8]?.toString();
    if (n % 8 === 0) await nextTick();
  }
  await nextTick();
  observer.disconnect();
  return collections;
}
