import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Check, Readiness } from './readiness.ts';

/** Of the event loop, by this clock: what has no answer is late a tick behind its limit. */
const TICK_MS = 1;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const check = (name: string, ask: Check['ask'], isNeeded = true): Check => ({ name, ask, isNeeded });

function counted(answer: () => boolean) {
  const asked = { times: 0 };
  const ask = () => {
    asked.times += 1;
    return answer();
  };
  return { asked, ask };
}

describe('readiness', () => {
  it.each<[string, Check['ask']]>([
    ['is not ready', () => false],
    ['throws', () => Promise.reject(new Error('connection lost'))],
    ['does not answer', () => new Promise<boolean>(() => {})],
  ])('is unavailable while something needed %s, and names it', async (_, ask) => {
    const readiness = new Readiness({ checkTimeoutMs: 2_000 });
    readiness.booted([check('bus', () => true), check('database', ask)]);

    const reported = readiness.report();
    await vi.advanceTimersByTimeAsync(2_000 + TICK_MS);

    expect(await reported).toEqual({ status: 'unavailable', checks: { bus: 'ok', database: 'unavailable' } });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('stays ready without an optional store, and reports it as away', async () => {
    const readiness = new Readiness();
    readiness.booted([check('bus', () => true), check('cache', () => false, false)]);

    expect(await readiness.report()).toEqual({ status: 'ready', checks: { bus: 'ok', cache: 'unavailable' } });
  });

  it('is booting until the boot is over, whatever the state of the stores', async () => {
    const readiness = new Readiness();

    expect(await readiness.report()).toEqual({ status: 'booting', checks: {} });
  });

  it('is draining from then on, even when the boot ends later', async () => {
    const readiness = new Readiness();
    readiness.drain();
    expect((await readiness.report()).status).toBe('draining');

    readiness.booted([check('bus', () => true)]);
    expect(await readiness.report()).toEqual({ status: 'draining', checks: { bus: 'ok' } });
  });

  it('checks again after a second when the machine’s clock has been set back', async () => {
    let isThere = true;
    const readiness = new Readiness();
    readiness.booted([check('database', () => isThere)]);
    expect((await readiness.report()).status).toBe('ready');

    isThere = false;
    vi.setSystemTime(Date.now() - 3_600_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await readiness.report()).status).toBe('unavailable');
  });

  it('checks once for all requests within a second, and again after it', async () => {
    let isThere = true;
    const { asked, ask } = counted(() => isThere);
    const readiness = new Readiness();
    readiness.booted([check('database', ask)]);

    await Promise.all([readiness.report(), readiness.report(), readiness.report()]);
    await vi.advanceTimersByTimeAsync(999);
    expect((await readiness.report()).status).toBe('ready');
    expect(asked.times).toBe(1);

    isThere = false;
    await vi.advanceTimersByTimeAsync(1);
    expect((await readiness.report()).status).toBe('unavailable');
    expect(asked.times).toBe(2);
    isThere = true;
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await readiness.report()).status).toBe('ready');
  });
});
