import { setImmediate as nextTick } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { CallerKey } from '../keys/caller-key.ts';
import type { Cache } from '../storage/cache.ts';
import { memoryCache } from '../storage/memory/memory-cache.ts';
import { noMetrics } from '../telemetry/metrics.ts';
import { RateLimits } from './rate-limits.ts';
import { rateCounterOf } from './rate-windows.ts';

const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });

let nowMs: number;
let isAway: boolean;
let cache: Cache;
let lines: string[][];
/** When counters are incremented. */
let countsFrom: Promise<void>;
let increments: string[];
const clock = { nowMs: () => nowMs };

beforeEach(() => {
  nowMs = 1_800_000_000_000;
  isAway = false;
  lines = [];
  [countsFrom, increments] = [Promise.resolve(), []];
  const real = memoryCache({ clock });
  cache = new Proxy(real, {
    get:
      (target, name: keyof Cache) =>
      async (...args: never[]) => {
        if (isAway) throw new SwitchyardError('service.unreachable', 'away');
        if (name === 'increment') await countsFrom;
        if (name === 'increment') increments.push(args.slice(0, 2).join(' '));
        return (target[name] as (...all: never[]) => unknown)(...args);
      },
  });
});

const keyWith = (rates: Partial<CallerKey['rates']>): CallerKey => ({
  ...{ id: 'k', hash: 'h', label: 'k', isManagement: false, disabled: false, expiresAtMs: null, isOauth: false, limitNano: null, limitReset: null },
  rates: { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null, ...rates },
});
const at = (level: string) => (_: object, message: string) => void lines.push([level, message]);
const log = { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
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

  it('refuse a call of more tokens than a counter can hold, and go on to be counted for all processes together', async () => {
    const key = keyWith({ requestsPerMinute: 1_000, tokensPerMinute: 100 });
    const limits = open();
    expect(await allowedOf(limits, key, 2, Number.MAX_SAFE_INTEGER + 9)).toBe(0);
    expect(lines).toEqual([]);
    expect(await allowedOf(limits, key, 101)).toBe(100);
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
  it('count a call once, which the cache has counted after its time', async () => {
    let count = () => {};
    countsFrom = new Promise((resolve) => {
      count = resolve;
    });
    const limits = open();
    const rated = await limits.admit(keyWith({ requestsPerMinute: 2, tokensPerMinute: 100 }), { callId: 'late', tokens: 40 });
    expect(rated.isShared).toBe(false);
    count();
    await eventually(() => increments.filter((increment) => /:(requests|tokens):/.test(increment)).length).toBe(4);

    for (const [kind, by] of [
      ['requests', 1],
      ['tokens', 40],
    ] as const) {
      const counter = rateCounterOf(kind, 'k', nowMs);
      expect(increments).toEqual(expect.arrayContaining([`${counter} ${by}`, `${counter} -${by}`]));
    }
  });

  it('is not what a process takes for it that was paused itself', async () => {
    const limits = open();
    countsFrom = (async () => {
      for (let tick = 0; tick < 4; tick += 1) await nextTick();
    })();
    const admitted = limits.admit(keyWith({ requestsPerMinute: 2 }), { callId: 'paused', tokens: 1 });
    const pausedUntil = performance.now() + 400;
    while (performance.now() < pausedUntil);
    expect((await admitted).isShared).toBe(true);
    expect(lines).toEqual([]);
  });

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
    expect(lines).toEqual([
      ['error', 'the cache is away: each process limits keys by a share of its own'],
      ['info', 'the limits of keys are counted for all processes together again'],
    ]);
  });
});

it('a delivery that the cache answers too late ends its own hold alone: another delivery of the call keeps the slot', async () => {
  const limits = open();
  const key = keyWith({ callsAtOnce: 1, requestsPerMinute: 1 });
  const first = await limits.admit(key, { callId: 'a', tokens: 1 });
  let answer = () => {};
  countsFrom = new Promise((resolve) => {
    answer = resolve;
  });
  expect((await limits.admit(key, { callId: 'a', tokens: 1 })).isShared).toBe(false);
  answer();
  const counter = rateCounterOf('requests', 'k', nowMs);
  // Its request is refused, and counts no more.
  await eventually(() => increments.slice(-2)).toEqual([`${counter} 1`, `${counter} -1`]);

  expect(await cache.acquireSlot('rate:slots:k', 'other', 1, 60_000)).toBe(false);
  first.end();
  await eventually(() => cache.acquireSlot('rate:slots:k', 'other', 1, 60_000)).toBe(true);
});

describe('a call of a key', () => {
  const key = keyWith({ tokensPerMinute: 100, callsAtOnce: 1, requestsPerMinute: 10 });

  it.each([false, true])('counts the tokens that it has used, in its own minute alone (cache away: %s)', async (away) => {
    isAway = away;
    const limits = open();
    const rated = await limits.admit(key, { callId: 'a', tokens: 90 });
    rated.correct(40);
    rated.end();
    expect(await allowedOf(limits, key, 1, 61)).toBe(0);
    const second = await limits.admit(key, { callId: 'b', tokens: 60 });

    nowMs += 60_000;
    second.end();
    const third = await limits.admit(key, { callId: 'c', tokens: 50 });
    second.correct(1_000);
    second.release();
    third.end();
    expect(await allowedOf(limits, key, 1, 51)).toBe(0);
    expect(await allowedOf(limits, key, 1, 50)).toBe(1);
  });

  it('that is refused counts no request', async () => {
    const limits = open();
    const rated = await limits.admit(key, { callId: 'a', tokens: 1 });
    expect(await allowedOf(limits, key, 20)).toBe(0);
    rated.end();
    for (let call = 0; call < 9; call += 1) (await limits.admit(key, { callId: `d${call}`, tokens: 1 })).end();
    expect(await allowedOf(limits, key, 1)).toBe(0);
  });

  it('that goes on elsewhere frees no slot, and its slot is extended no longer', async () => {
    const limits = open();
    const rated = await limits.admit(key, { callId: 'a', tokens: 1 });
    rated.leave();
    rated.end();
    limits.stop();
    expect(await allowedOf(open(), key, 1)).toBe(0);
    nowMs += 15_001;
    expect(await allowedOf(open(), key, 1)).toBe(1);
  });
});
