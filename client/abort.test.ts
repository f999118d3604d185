import { afterEach, expect, it, vi } from 'vitest';
import { pause } from './abort.ts';

afterEach(() => void vi.restoreAllMocks());

it('asks for no longer timer than there is, since one of 25 days would fire at once', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const stop = new AbortController();
  const paused = pause(2 ** 31, stop.signal);
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
  stop.abort();
  await paused;
});
