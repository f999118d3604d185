import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { outage, type Seen, WORKERS } from './test-support/outage.ts';

/** Under a clock of the test. @param isAway whether Redis is, at a time */
async function simulated(isAway: (atMs: number) => boolean): Promise<Seen> {
  let nowMs = 1_000_000;
  let isGone = false;
  const stored = memoryCache({ clock: { nowMs: () => nowMs } });
  const cache = new Proxy({} as Cache, {
    get:
      (_, name: keyof Cache) =>
      async (...given: unknown[]) => {
        if (isGone) throw new SwitchyardError('service.unreachable', 'Redis did not answer');
        return (stored[name] as (...all: unknown[]) => unknown)(...given);
      },
  });
  const pause = async (ms: number) => {
    nowMs += ms;
  };
  return outage({ nowMs: () => nowMs, pause, cache, isTimed: false }, (atMs) => {
    isGone = isAway(atMs);
  });
}

describe('an outage', () => {
  it.each<[string, (atMs: number) => boolean]>([
    ['with Redis', () => false],
    ['with Redis killed before it fails', (atMs) => atMs >= 5_000],
    ['with Redis killed while it fails', (atMs) => atMs >= 20_000 && atMs < 40_000],
    ['with Redis killed while it recovers', (atMs) => atMs >= 45_000 && atMs < 80_000],
    ['without Redis', () => true],
  ])(
    'DESIGN 8: an upstream that fails for 40 s under load is left after at most ten failures per worker, and taken back within 35 s by all, %s',
    async (_, isAway) => {
      const { failures, backAfterMs, callsFailed } = await simulated(isAway);
      expect(callsFailed).toBe(0);
      expect(failures).toHaveLength(WORKERS);
      expect(Math.max(...failures)).toBeLessThanOrEqual(10);
      expect(backAfterMs).toHaveLength(WORKERS);
      expect(Math.max(...backAfterMs)).toBeLessThanOrEqual(35_000);
    },
  );
});
