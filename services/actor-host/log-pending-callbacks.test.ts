import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { logPendingCallbacks } from './log-pending-callbacks.ts';

describe('the line about callbacks that are left', () => {
  const warn = vi.fn();
  const log = { ...silentLog, warn };
  const over = (pendingReceivers: () => Promise<string[]>) => ({ log, effects: { pendingReceivers } });

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
    warn.mockReset();
  });

  it('names hosts with their ports, each once and at most twenty, and nothing else of an address', async () => {
    const urls = ['https://hooks.example.com:8443/secret?a=b', 'https://hooks.example.com:8443/other', 'no address'];
    await logPendingCallbacks(
      { waiting: 2, inFlight: 1 },
      over(async () => urls),
    );
    expect(warn.mock.lastCall?.[0]).toEqual({ callbacks: 3, in_flight: 1, receivers: ['hooks.example.com:8443'] });
    const many = Array.from({ length: 50 }, (_, index) => `https://host-${index}.example.com/`);
    await logPendingCallbacks(
      { waiting: 50, inFlight: 0 },
      over(async () => many),
    );
    expect(warn.mock.lastCall?.[0].receivers).toHaveLength(20);
  });

  it.each([
    ['does not answer', () => new Promise<never>(() => {})],
    ['refuses', () => Promise.reject(new Error('it is away'))],
  ])('comes without receivers when the database %s', async (_, pendingReceivers) => {
    const logged = logPendingCallbacks({ waiting: 1, inFlight: 0 }, over(pendingReceivers));
    await vi.advanceTimersByTimeAsync(1_000);
    await logged;
    expect(warn.mock.lastCall?.[0]).toEqual({ callbacks: 1, in_flight: 0, receivers: [] });
  });

  it('is not logged when nothing is left', async () => {
    await logPendingCallbacks(
      { waiting: 0, inFlight: 0 },
      over(() => expect.fail('nothing is asked')),
    );
    expect(warn).not.toHaveBeenCalled();
  });
});
