import { expect, it } from 'vitest';
import { hostTimes } from './host.ts';

it('DESIGN 4: a host says every second that it lives, lets go of its partitions after four in silence, and may be replaced after five', () => {
  expect(hostTimes).toEqual({ beatMs: 1_000, dropAfterMs: 4_000, deadAfterMs: 5_000 });
});
