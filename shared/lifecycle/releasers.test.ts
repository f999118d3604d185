import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Log } from '../telemetry/log.ts';
import { Releasers } from './releasers.ts';

/** Of the event loop, by this clock: what has no answer is late a tick behind its limit. */
const TICK_MS = 1;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<void>(() => {});

it('goes on after a release that fails, whether it throws at once or later, and logs and returns the failures', async () => {
  const logged: unknown[] = [];
  const ignore = () => {};
  const log: Log = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: (fields, message) => logged.push({ ...fields, message }) };
  const releasers = new Releasers(log);
  const released: string[] = [];
  const thrown = new Error('thrown');
  const rejected = new Error('rejected');
  releasers.add('first', () => {
    released.push('first');
  });
  releasers.add('throws', () => {
    throw thrown;
  });
  releasers.add('rejects', () => Promise.reject(rejected));

  const failures = await releasers.releaseAll({ timeoutMs: 1_000 });

  expect(released).toEqual(['first']);
  expect(failures).toEqual([
    { name: 'rejects', error: rejected },
    { name: 'throws', error: thrown },
  ]);
  expect(logged).toEqual([
    { err: rejected, released: 'rejects', message: 'a release failed' },
    { err: thrown, released: 'throws', message: 'a release failed' },
  ]);
});

it('abandons a hanging release at the timeout, and still calls the others', async () => {
  const releasers = new Releasers();
  const released: string[] = [];
  releasers.add('folder', () => {
    released.push('folder');
  });
  releasers.add('hangs too', never);
  releasers.add('hangs', never);

  const releasing = releasers.releaseAll({ timeoutMs: 1_000 });
  await vi.advanceTimersByTimeAsync(999);
  expect(released).toEqual([]);
  await vi.advanceTimersByTimeAsync(1 + 250 + 2 * TICK_MS);

  expect(released).toEqual(['folder']);
  expect(await releasing).toMatchObject([
    { name: 'hangs', error: { code: 'service.not_ready', message: 'hangs was not released within 1000 ms' } },
    { name: 'hangs too', error: { code: 'service.not_ready' } },
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

it('releases the last added first, one at a time', async () => {
  const releasers = new Releasers();
  const steps: string[] = [];
  for (const name of ['database', 'bus', 'http']) {
    releasers.add(name, async () => {
      steps.push(`${name} begins`);
      await new Promise((resolve) => setTimeout(resolve, 10));
      steps.push(`${name} ends`);
    });
  }

  const releasing = releasers.releaseAll({ timeoutMs: 1_000 });
  await vi.advanceTimersByTimeAsync(30);

  expect(await releasing).toEqual([]);
  expect(steps).toEqual(['http begins', 'http ends', 'bus begins', 'bus ends', 'database begins', 'database ends']);
  expect(vi.getTimerCount()).toBe(0);
});

it('releases nothing twice, and also what is added while it releases', async () => {
  const releasers = new Releasers();
  const released: string[] = [];
  releasers.add('first', () => {
    released.push('first');
    releasers.add('late', () => {
      released.push('late');
    });
  });

  await Promise.all([releasers.releaseAll({ timeoutMs: 1_000 }), releasers.releaseAll({ timeoutMs: 1_000 })]);
  await releasers.releaseAll({ timeoutMs: 1_000 });

  expect(released).toEqual(['first', 'late']);
});
