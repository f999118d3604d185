import { expect, it } from 'vitest';
import type { Cache } from '#shared/storage/cache.ts';
import { SharedHealth } from './shared-health.ts';

it('is read again after two seconds, and after the clock was set back', async () => {
  let nowMs = 1_800_000_000_000;
  let reads = 0;
  const cache = {
    getMany: async (keys: readonly string[]) => {
      reads += 1;
      return keys.map(() => null);
    },
  } as unknown as Cache;
  const health = new SharedHealth({ cache, clock: { nowMs: () => nowMs } });
  const readsAfter = async (ms: number) => {
    nowMs += ms;
    await health.refresh();
    return reads;
  };

  expect([await readsAfter(0), await readsAfter(1_999), await readsAfter(1), await readsAfter(-3_600_000)]).toEqual([1, 1, 2, 3]);
});
