import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LongestLateness } from './longest-lateness.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('is that of the longest block of the last ten seconds, also while it lasts', () => {
  let nowMs = 0;
  const lateness = new LongestLateness(() => nowMs);
  const run = (ticks: number) => {
    for (let tick = 0; tick < ticks; tick += 1) {
      nowMs += 250;
      vi.advanceTimersByTime(250);
    }
  };
  run(40);
  expect(lateness.measureMs()).toBe(0);
  nowMs += 3_000;
  expect(lateness.measureMs()).toBe(2_750);
  vi.advanceTimersByTime(250);
  nowMs += 750;
  vi.advanceTimersByTime(250);
  expect(lateness.measureMs()).toBe(2_750);
  run(38);
  expect(lateness.measureMs()).toBe(2_750);
  run(1);
  expect(lateness.measureMs()).toBe(500);
  run(1);
  expect(lateness.measureMs()).toBe(0);
  lateness.stop();
  expect(vi.getTimerCount()).toBe(0);
});
