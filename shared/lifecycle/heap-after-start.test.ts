import { getHeapSpaceStatistics } from 'node:v8';
import { expect, it } from 'vitest';
import { collectAfterStart } from './heap.ts';

const MIB = 1_024 * 1_024;

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.physical_space_size ?? 0;
}

it('the young generation, which a start has grown, is small again', async () => {
  // Half of them stay reachable for some collections, as what a start makes does: V8 grows the young generation for these.
  const living: unknown[] = new Array(200_000).fill(null);
  for (let n = 0; n < 2_000_000; n += 1) living[n % living.length] = { n, text: `of ${n}`, list: [n] };
  const grown = youngBytes();

  await collectAfterStart();

  expect(grown).toBeGreaterThan(8 * MIB);
  expect(youngBytes()).toBeLessThan(4 * MIB);
});
