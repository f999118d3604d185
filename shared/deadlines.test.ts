import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Deadlines } from './deadlines.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Expiry times by name, in milliseconds from now. */
function watching() {
  const startedAt = performance.now();
  const met: [name: string, atMs: number][] = [];
  const deadlines = new Deadlines();
  const begin = (name: string, afterMs: number) => deadlines.begin(afterMs, () => met.push([name, performance.now() - startedAt]));
  return { deadlines, met, begin };
}

it('expires each when its time is over, the earliest first, and once', () => {
  const { begin, met } = watching();
  begin('late', 500);
  begin('soon', 100);
  begin('later', 3_000);
  vi.advanceTimersByTime(10_000);

  expect(met).toEqual([
    ['soon', 100],
    ['late', 500],
    ['later', 3_000],
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

it('does not expire one that was stopped, also when it is stopped by one that is due with it', () => {
  const { deadlines, begin, met } = watching();
  const stopped = begin('stopped', 100);
  deadlines.stop(stopped);
  deadlines.stop(stopped);
  deadlines.begin(200, () => deadlines.stop(other));
  const other = begin('other', 200.5);
  begin('left', 300);
  vi.advanceTimersByTime(1_000);

  expect(met).toEqual([['left', 300]]);
});

it('restarts one, whether it runs, was stopped or has expired', () => {
  const { deadlines, begin, met } = watching();
  const one = begin('one', 100);
  vi.advanceTimersByTime(90);
  deadlines.restart(one, 100);
  vi.advanceTimersByTime(200);
  deadlines.restart(one, 50);
  deadlines.stop(one);
  deadlines.restart(one, 100);
  vi.advanceTimersByTime(1_000);

  expect(met).toEqual([
    ['one', 190],
    ['one', 390],
  ]);
});

it('expires what is due soon after another up to 10 ms late, and nothing early', () => {
  const { begin, met } = watching();
  for (const afterMs of [100, 101, 105, 112]) begin(`after ${afterMs}`, afterMs);
  vi.advanceTimersByTime(1_000);

  expect(met).toEqual([
    ['after 100', 100],
    ['after 101', 110],
    ['after 105', 110],
    ['after 112', 120],
  ]);
});

it('uses one timer for all of them, and none once they are over', () => {
  const { deadlines, begin } = watching();
  const all = Array.from({ length: 100 }, (_, at) => begin('one', 1_000 + at));
  expect(vi.getTimerCount()).toBe(1);
  for (const one of all) deadlines.stop(one);
  vi.advanceTimersByTime(1_000);
  expect(vi.getTimerCount()).toBe(0);
});

it('works beyond the longest timeout of Node', () => {
  const { begin, met } = watching();
  begin('far', 2 ** 32);
  begin('never', Number.POSITIVE_INFINITY);
  vi.advanceTimersByTime(2 ** 31 + 10);
  expect(met).toEqual([]);
  vi.advanceTimersByTime(2 ** 31 + 10);
  expect(met.map(([name]) => name)).toEqual(['far']);
});

it('calls in the context in which it was created, not in that of the caller that set the timer', () => {
  const context = new AsyncLocalStorage<string>();
  const met: (string | undefined)[] = [];
  const deadlines = context.run('made', () => new Deadlines());
  context.run('began', () => deadlines.begin(100, () => met.push(context.getStore())));
  vi.advanceTimersByTime(100);
  expect(met).toEqual(['made']);
});
