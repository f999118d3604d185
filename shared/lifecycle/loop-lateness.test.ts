import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LoopLateness } from './loop-lateness.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Its clock, which may run on while no timer fires. */
function measured() {
  let nowMs = 0;
  const lateness = new LoopLateness(() => nowMs);
  const run = (ms: number) => {
    for (let at = 0; at < ms; at += 250) {
      nowMs += 250;
      vi.advanceTimersByTime(250);
    }
  };
  const block = (ms: number) => {
    nowMs += ms;
  };
  return { lateness, run, block };
}

it('counts nothing of a process whose timers are on time', () => {
  const { lateness, run, block } = measured();
  run(10_000);
  block(20);
  run(10_000);
  expect(lateness.measureMs()).toBe(0);
  lateness.stop();
});

it('counts each pause of the event loop, and one that has not ended', () => {
  const { lateness, run, block } = measured();
  run(1_000);
  block(3_000);
  run(1_000);
  expect(lateness.totalMs).toBe(3_000);
  block(1_250);
  expect(lateness.measureMs()).toBe(4_000);
  expect(lateness.totalMs).toBe(3_000);
  lateness.stop();
});
