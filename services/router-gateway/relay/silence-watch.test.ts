import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Deadlines } from '#shared/deadlines.ts';
import { SilenceWatch } from './silence-watch.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Silences: milliseconds from now, and the number in a row. */
function watching(lateness = { totalMs: 0, measureMs: () => 0 }) {
  const startMs = Date.now();
  const met: [atMs: number, consecutive: number][] = [];
  const watch: SilenceWatch = new SilenceWatch({ silenceMs: 100, silenceMaxMs: 300 }, () => met.push([Date.now() - startMs, watch.consecutive]), {
    deadlines: new Deadlines(),
    lateness,
  });
  return { watch, met };
}

it('reports silence after its interval, then after twice that, and never later than its maximum', () => {
  const { watch, met } = watching();
  vi.advanceTimersByTime(900);
  watch.stop();
  vi.advanceTimersByTime(900);

  expect(met).toEqual([
    [100, 1],
    [300, 2],
    [600, 3],
    [900, 4],
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

it('begins anew with every frame, before the first silence and after it', () => {
  const { watch, met } = watching();
  for (let step = 0; step < 5; step += 1) {
    vi.advanceTimersByTime(90);
    watch.noteReceived();
  }
  vi.advanceTimersByTime(110);
  watch.noteReceived();
  expect(watch.consecutive).toBe(0);
  vi.advanceTimersByTime(110);
  watch.stop();

  expect(met).toEqual([
    [550, 1],
    [660, 1],
  ]);
});

it('DESIGN 7: does not count time by which the process itself was late', () => {
  const lateness = { totalMs: 0, measureMs: () => lateness.totalMs };
  const { watch, met } = watching(lateness);
  lateness.totalMs = 40;
  watch.noteReceived();
  vi.advanceTimersByTime(90);
  lateness.totalMs = 90;
  vi.advanceTimersByTime(50);
  expect(met).toEqual([]);
  lateness.totalMs = 100;
  vi.advanceTimersByTime(300);
  watch.stop();

  expect(met).toEqual([
    [160, 1],
    [360, 2],
  ]);
});

it('DESIGN 7: a silence is reported under lasting lateness too, once the process was on time for its length', () => {
  const deadline = { at: 6_000, slot: null, onOver: () => {} };
  const deadlines = {
    begin: (_afterMs: number, onOver: () => void) => Object.assign(deadline, { onOver }),
    restart: (_: object, afterMs: number) => {
      deadline.at = performance.now() + afterMs;
    },
  } as unknown as Deadlines;
  const lateness = { totalMs: 0, measureMs: () => lateness.totalMs };
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const metAt: number[] = [];
  new SilenceWatch({ silenceMs: 6_000, silenceMaxMs: 6_000 }, () => metAt.push(nowMs), { deadlines, lateness });
  for (let tick = 0; tick < 50; tick += 1) {
    nowMs += 4_000;
    lateness.totalMs += 3_750;
    if (deadline.at <= nowMs) deadline.onOver();
  }
  expect(metAt).toEqual([96_000, 192_000]);
});
