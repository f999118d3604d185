import { beforeEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { recordingLog } from '../test-support/harness.ts';
import { RateLimits } from './rate-limits.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 30_000, interval: 5 });

let nowMs: number;
let isAway: boolean;
let cache: Cache;
let log: ReturnType<typeof recordingLog>;
const clock = { nowMs: () => nowMs };

beforeEach(() => {
  nowMs = 1_800_000_000_000;
  isAway = false;
  log = recordingLog();
  const real = memoryCache({ clock });
  cache = new Proxy(real, {
    get:
      (target, name: keyof Cache) =>
      (...args: never[]) =>
        isAway ? Promise.reject(new SwitchyardError('service.unreachable', 'away')) : (target[name] as (...all: never[]) => unknown)(...args),
  });
});

const keyWith = (rates: Partial<CallerKey['rates']>): CallerKey => ({
  ...{ id: 'k', hash: 'h', label: 'k', isManagement: false, disabled: false, expiresAtMs: null, isOauth: false, limitNano: null, limitReset: null },
  rates: { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null, ...rates },
});
const open = () => new RateLimits({ cache, clock, log, metrics: noMetrics });

let calls = 0;
/** How many of so many calls are allowed. */
async function allowedOf(limits: RateLimits, key: CallerKey, count: number, tokens = 1): Promise<number> {
  let allowed = 0;
  for (let call = 0; call < count; call += 1) {
    calls += 1;
    const outcome = await limits.admit(key, { callId: `c${calls}`, tokens }).catch((error) => error.code);
    if (outcome !== 'request.rate_limited') allowed += 1;
  }
  return allowed;
}

describe('limits of a key', () => {
  it('begin anew with each minute', async () => {
    const limits = open();
    expect(await allowedOf(limits, keyWith({ requestsPerMinute: 3 }), 5)).toBe(3);
    nowMs += 60_000;
    expect(await allowedOf(limits, keyWith({ requestsPerMinute: 3 }), 5)).toBe(3);
  });

  it('count no tokens of calls that were refused or not sent', async () => {
    const limits = open();
    const key = keyWith({ tokensPerMinute: 100 });
    expect(await allowedOf(limits, key, 1, 200)).toBe(0);
    const rated = await limits.admit(key, { callId: 'a', tokens: 100 });
    expect(await allowedOf(limits, key, 1, 1)).toBe(0);
    rated.release();
    expect(await allowedOf(limits, key, 1, 100)).toBe(1);
  });
});

describe('limits of a key while the cache is away', () => {
  it('are shares of the gateways that limited a key of late', async () => {
    const [one, other] = [open(), open()];
    const key = keyWith({ requestsPerMinute: 10 });
    await allowedOf(one, key, 1);
    await allowedOf(other, key, 1);
    nowMs += 60_000;
    // Each learns of the window before.
    await allowedOf(one, key, 1);
    await allowedOf(other, key, 1);
    isAway = true;
    expect(await allowedOf(one, key, 20)).toBe(5);
    expect(await allowedOf(other, key, 20)).toBe(5);
  });

  it('are at least one, with a slot that is free at the end of its call', async () => {
    const limits = open();
    isAway = true;
    const key = keyWith({ callsAtOnce: 1 });
    const rated = await limits.admit(key, { callId: 'a', tokens: 1 });
    expect(rated.isShared).toBe(false);
    expect(await allowedOf(limits, key, 1)).toBe(0);
    rated.end();
    rated.end();
    expect(await allowedOf(limits, key, 2)).toBe(1);
  });

  it('count for all gateways again when it is back, and both are logged once', async () => {
    const limits = open();
    const key = keyWith({ requestsPerMinute: 1_000 });
    isAway = true;
    expect(await allowedOf(limits, key, 3)).toBe(3);
    isAway = false;
    calls = 0;
    await eventually(async () => {
      calls += 1;
      return (await limits.admit(key, { callId: `b${calls}`, tokens: 1 })).isShared;
    }).toBe(true);
    expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', 'the cache is away: each gateway limits keys by a share of its own'],
      ['info', 'the limits of keys are counted for all gateways together again'],
    ]);
  });
});
