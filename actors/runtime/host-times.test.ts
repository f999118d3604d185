import { expect, it } from 'vitest';
import { hostTimes } from './host-times.ts';

it('DESIGN 4: a host writes a heartbeat every second, drops its partitions after four without one, may be replaced after five, and releases them after ten without the broker', () => {
  expect(hostTimes).toEqual({ beatMs: 1_000, dropAfterMs: 4_000, expiresAfterMs: 5_000, cutOffMs: 10_000, callSilenceMs: 6_000 });
});
