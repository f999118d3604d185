import { getHeapSpaceStatistics } from 'node:v8';
import { expect, it } from 'vitest';
import { makeAllObjectsYoung } from './young-objects.ts';

const MADE = 2_000_000;

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0;
}

/** Makes objects, of which so many live at a time. @returns by how much the old generation grew, all growths together */
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

it('what is made for a moment is not made among the old, though the same code made what lived long', () => {
  makeAllObjectsYoung();
  let grown = 0;
  for (let round = 0; round < 4; round += 1) {
    // Code of its own in each round: V8 learns for each place in the code.
    const make = new Function('n', 'return { n, list: [n, n + 1, n + 2], inner: { n } }') as (n: number) => unknown;
    makeObjects(make, new Array<unknown>(200_000).fill(null));
    grown += makeObjects(make, new Array<unknown>(64).fill(null));
  }

  expect(grown).toBeLessThan(300_000_000);
}, 60_000);
