import { beforeEach, expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import { RateLimits } from '#shared/rates/rate-limits.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { CallRates } from './call-rates.ts';
import { recordedLog } from './test-support/recorded-log.ts';

const MINUTE_MS = 60_000;
const START = 30_000_000 * MINUTE_MS;
const eventually = <Value>(probe: () => Value | Promise<Value>) => expect.poll(probe, { timeout: 60_000, interval: 5 });

let nowMs: number;
let cache: Cache;
let recorded: ReturnType<typeof recordedLog>;
const clock = { nowMs: () => nowMs };
const never = new AbortController().signal;

beforeEach(() => {
  nowMs = START;
  cache = memoryCache({ clock });
  recorded = recordedLog();
  tried = [];
});

/** Calls that were tried, once per try. */
let tried: string[];
function openRates(more = {}): CallRates {
  const limits = new RateLimits({ cache, clock, log: recorded.log, metrics: noMetrics });
  const counted: Pick<RateLimits, 'admit'> = {
    admit: (key, one) => {
      tried.push(one.callId);
      return limits.admit(key, one);
    },
  };
  return new CallRates({ rates: counted, clock, longestWaitMs: 20, ...more });
}
const keyWith = (rates: Partial<CallerKey['rates']>): CallerKey => ({
  ...{ id: 'k', hash: 'h', label: 'The agent', isManagement: false, disabled: false, expiresAtMs: null, isOauth: false, limitNano: null, limitReset: null },
  rates: { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null, ...rates },
});
/** With five minutes to its deadline. */
const call = (callId: string, leftMs = 5 * MINUTE_MS) => ({ callId, deadlineAtMs: START + leftMs }) as RouterCall;

it('a call over the limit of its key waits for the next minute, is counted there once, and one line says so', async () => {
  const rates = openRates();
  const key = keyWith({ requestsPerMinute: 1 });
  await rates.admit(call('a'), key, 1, never, recorded.log);
  let isAdmitted = false;
  const waiting = rates.admit(call('b'), key, 1, never, recorded.log).then(() => {
    isAdmitted = true;
  });
  await eventually(() => recorded.lines.map(({ message }) => message)).toEqual(['a call of an agent waits, since its key is over its limits']);
  await eventually(() => tried.length).toBeGreaterThan(4);
  expect(isAdmitted).toBe(false);

  nowMs += MINUTE_MS;
  await waiting;
  expect(recorded.lines).toHaveLength(1);
  expect(await cache.get(`rate:requests:k:${START / MINUTE_MS + 1}`)).toBe('1');
});

it('a call waits for a slot until another call ends, and its tries count no requests', async () => {
  const rates = openRates();
  const key = keyWith({ callsAtOnce: 1, requestsPerMinute: 100 });
  const first = await rates.admit(call('a'), key, 1, never, recorded.log);
  const waiting = rates.admit(call('b'), key, 1, never, recorded.log);
  await eventually(() => tried.length).toBeGreaterThan(4);

  first.end();
  await waiting;
  expect(await cache.get(`rate:requests:k:${START / MINUTE_MS}`)).toBe('2');
});

it.each([
  ['its deadline is nearer than the next try', call('b', 10), {}, 1],
  ['too many calls wait', call('b'), { maxWaiting: 0 }, 1],
  ['it needs more tokens than a minute has', call('b'), {}, 101],
])('a call is refused at once when %s', async (_, refused, more, tokens) => {
  const rates = openRates(more);
  const key = keyWith({ requestsPerMinute: 1, tokensPerMinute: 100 });
  await rates.admit(call('a'), key, 1, never, recorded.log);

  await expect(rates.admit(refused, key, tokens, never, recorded.log)).rejects.toMatchObject({ code: 'request.rate_limited' });
  expect(recorded.lines).toEqual([]);
});

it('a call that waits ends with its signal, and gives its place to another', async () => {
  const rates = openRates({ maxWaiting: 1 });
  const key = keyWith({ requestsPerMinute: 1 });
  await rates.admit(call('a'), key, 1, never, recorded.log);
  const ending = new AbortController();
  const waiting = rates.admit(call('b'), key, 1, ending.signal, recorded.log);
  await eventually(() => recorded.lines.length).toBe(1);

  ending.abort(new Error('cancelled'));
  await expect(waiting).rejects.toThrow('cancelled');
  const next = rates.admit(call('c'), key, 1, never, recorded.log);
  await eventually(() => recorded.lines.length).toBe(2);
  nowMs += MINUTE_MS;
  await next;
});

it('an error that is not of the limits is not waited for', async () => {
  const rates = new CallRates({ rates: { admit: () => Promise.reject(new Error('broken')) }, clock });

  await expect(rates.admit(call('a'), keyWith({ callsAtOnce: 1 }), 1, never, recorded.log)).rejects.toThrow('broken');
});
