import { afterEach, expect, it } from 'vitest';
import { FreeTime } from './free-time.ts';

let freeTime: FreeTime | undefined;
afterEach(() => freeTime?.stop());

function hold(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

it('counts no time in which the event loop was held', async () => {
  let isCalled = false;
  freeTime = new FreeTime();
  freeTime.onceAfter(400, () => {
    isCalled = true;
  });
  hold(800);
  await new Promise((resolve) => setTimeout(resolve, 1));

  expect(isCalled).toBe(false);
  await expect.poll(() => isCalled, { timeout: 60_000 }).toBe(true);
});

it('calls back once, in the order of the times, and not after its stop', async () => {
  const called: string[] = [];
  freeTime = new FreeTime();
  freeTime.onceAfter(100, () => called.push('later'));
  freeTime.onceAfter(50, () => called.push('sooner'));
  await expect.poll(() => called.length, { timeout: 60_000 }).toBe(2);
  freeTime.onceAfter(50, () => called.push('again'));
  freeTime.stop();
  const other = new FreeTime();
  await new Promise<void>((resolve) => other.onceAfter(100, resolve));
  other.stop();

  expect(called).toEqual(['sooner', 'later']);
});
