import { afterEach, describe, expect, it } from 'vitest';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { cacheLimits } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { recordedLog } from '../../test-support/recorded-log.ts';
import { Health, type HealthTarget } from './health.ts';
import { HealthExchange } from './health-exchange.ts';
import { readSnapshot } from './health-snapshot.ts';

const unavailable = new SwitchyardError('router.provider_unavailable', 'it is down');
const limited = new SwitchyardError('router.provider_rate_limited', 'too many', { details: { retryAfterMs: 30_000 } });
const misconfigured = (status: number) => new SwitchyardError('router.provider_misconfigured', 'no', { details: { status } });

/** As each worker reads them from a file of its own. */
function targetAt(provider: string, upstream = 'a'): HealthTarget {
  const endpoint: EndpointConfig = { provider, upstream_model: upstream };
  return { model: { id: `m/${upstream}` }, endpoint, provider: { slug: provider } };
}

let nowMs = 1_000_000;
const clock = { nowMs: () => nowMs };
let isAway = false;
/** One cache of all workers, which can be away or lose everything. */
let stored = memoryCache({ clock });
const cache = new Proxy({} as Cache, {
  get:
    (_, name: keyof Cache) =>
    async (...given: unknown[]) => {
      if (isAway) throw new SwitchyardError('service.unreachable', 'Redis did not answer');
      return (stored[name] as (...all: unknown[]) => unknown)(...given);
    },
});

afterEach(() => {
  isAway = false;
  stored = memoryCache({ clock });
});

interface Worker {
  health: Health;
  exchange: HealthExchange;
  lines: ReturnType<typeof recordedLog>['lines'];
  /** Times in a row. */
  attempt(target: HealthTarget, error?: unknown, times?: number): void;
}

function worker(): Worker {
  const { log, lines } = recordedLog();
  const health = new Health({ clock, log, metrics: noMetrics });
  const exchange = new HealthExchange({ cache, health, clock, log });
  const attempt: Worker['attempt'] = (target, error = null, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      const attempted = health.begin(target);
      if (error === null) attempted.answered();
      attempted.end(error === null ? { how: 'succeeded', completionTokens: 10 } : { how: 'failed', error });
    }
  };
  return { health, exchange, lines, attempt };
}

/** All workers in turn, and 2 s. */
async function rounds(workers: readonly Worker[], times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    for (const { exchange } of workers) await exchange.round();
    nowMs += 2_000;
  }
}

const isOpen = ({ health }: Worker, target: HealthTarget) => health.of(target).isOpen;

describe('what a worker has seen', () => {
  it('is known to the others two rounds later: outages, cooldowns, credentials and models', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('down'), unavailable, 5);
    one.attempt(targetAt('limited'), limited);
    one.attempt(targetAt('refusing'), misconfigured(401));
    one.attempt(targetAt('without'), misconfigured(404), 3);
    await rounds([one, two], 2);
    expect(['down', 'limited', 'refusing', 'without', 'well'].map((provider) => isOpen(two, targetAt(provider)))).toEqual([true, true, true, true, false]);
    expect(two.health.of(targetAt('down')).isHealthy).toBe(false);
    expect(isOpen(two, targetAt('refusing', 'other'))).toBe(true);
    // One line per change, by the worker that has seen it.
    expect(two.lines).toEqual([]);
    expect(one.lines).toHaveLength(4);
  });

  it('is known to the others though the clock has fractions of milliseconds', async () => {
    nowMs += 0.25;
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    nowMs += 0.5;
    one.attempt(targetAt('limited'), limited);
    one.attempt(targetAt('refusing'), misconfigured(401));
    nowMs += 0.1;
    await rounds([one, two], 2);

    expect([isOpen(two, targetAt('limited')), isOpen(two, targetAt('refusing'))]).toEqual([true, true]);
  });

  it('ends with the trial of the worker that has seen it, or with its time', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('down'), unavailable, 5);
    one.attempt(targetAt('limited'), limited);
    await rounds([one, two], 7);
    expect([isOpen(two, targetAt('down')), isOpen(two, targetAt('limited'))]).toEqual([true, true]);
    nowMs += 1_000;
    one.attempt(targetAt('down'));
    await rounds([one, two], 2);
    expect([isOpen(two, targetAt('down')), isOpen(two, targetAt('limited'))]).toEqual([false, true]);
    await rounds([one, two], 6);
    expect(isOpen(two, targetAt('limited'))).toBe(false);
  });

  it('ends in 20 s when the worker that has seen it gets no more calls', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('down'), unavailable, 5);
    await rounds([one, two], 10);
    expect(isOpen(two, targetAt('down'))).toBe(false);
  });

  it('does not come back from those to which it was reported', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('limited'), limited);
    await rounds([one, two], 2);
    one.attempt(targetAt('limited'));
    await rounds([one, two], 2);
    expect([isOpen(one, targetAt('limited')), isOpen(two, targetAt('limited'))]).toEqual([false, false]);
  });

  it('does not count against what a worker has just seen itself, unless it is a rate limit', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('down'), unavailable, 5);
    one.attempt(targetAt('limited'), limited);
    await rounds([one, two], 2);
    two.attempt(targetAt('down'));
    expect([isOpen(two, targetAt('down')), isOpen(two, targetAt('limited'))]).toEqual([false, true]);
    await rounds([one, two], 3);
    expect(isOpen(two, targetAt('down'))).toBe(true);
  });

  it('is added up: failures and speeds', async () => {
    const workers = [worker(), worker(), worker()];
    await rounds(workers);
    for (const one of workers.slice(0, 2)) {
      for (let time = 0; time < 4; time += 1) {
        one.attempt(targetAt('flaky'));
        one.attempt(targetAt('flaky'), unavailable);
      }
      for (let time = 0; time < 12; time += 1) {
        const attempt = one.health.begin(targetAt('slow'));
        nowMs += 1_000;
        attempt.answered();
        nowMs += 1_000;
        attempt.end({ how: 'succeeded', completionTokens: 50 });
      }
    }
    // 8 attempts each: too few for either, and enough for both. The slow calls have taken 48 s.
    nowMs -= 48_000;
    await rounds(workers, 2);
    nowMs += 1_000;
    expect(workers.map(({ health }) => health.of(targetAt('flaky')).isHealthy)).toEqual([false, false, false]);
    for (const { health } of workers) {
      const { firstTokenSeconds, tokensPerSecond } = health.of(targetAt('slow'));
      expect(firstTokenSeconds?.p50 ?? 0).toBeCloseTo(1, 0);
      expect((tokensPerSecond?.p50 ?? 0) / 50).toBeCloseTo(1, 0);
    }
  });
});

describe('a lost cache', () => {
  it('DESIGN 8: without the cache each worker has its own view after 10 s, and all share again when it is back, also when it has lost everything', async () => {
    const [one, two] = [worker(), worker()];
    await rounds([one, two]);
    one.attempt(targetAt('limited'), limited);
    await rounds([one, two], 2);
    expect(isOpen(two, targetAt('limited'))).toBe(true);
    isAway = true;
    await rounds([one, two], 4);
    expect(isOpen(two, targetAt('limited'))).toBe(true);
    await rounds([one, two], 2);
    expect([isOpen(one, targetAt('limited')), isOpen(two, targetAt('limited'))]).toEqual([true, false]);
    isAway = false;
    stored = memoryCache({ clock });
    await rounds([one, two], 2);
    expect(isOpen(two, targetAt('limited'))).toBe(true);
    expect(two.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'warn the cache is away: the health of endpoints is what this worker sees by itself',
      'info the health of endpoints is shared with other workers again',
    ]);
  });
});

describe('in the cache', () => {
  it('a worker has one key, chosen again when another took the same, and forgotten 10 s after its end', async () => {
    const workers = Array.from({ length: 20 }, worker);
    const keys = Array.from({ length: 64 }, (_, index) => `health:${index}`);
    const taken = async () => (await stored.getMany(keys)).filter((text) => text !== null).length;
    await Promise.all(workers.map(({ exchange }) => exchange.round()));
    await rounds(workers, 8);
    expect(await taken()).toBe(20);
    await rounds(workers.slice(0, 3), 6);
    expect(await taken()).toBe(3);
  });

  it('more workers than keys only read', async () => {
    const workers = Array.from({ length: 65 }, worker);
    await rounds(workers, 3);
    const last = workers.at(-1) as Worker;
    (workers[0] as Worker).attempt(targetAt('limited'), limited);
    await rounds(workers);
    expect(isOpen(last, targetAt('limited'))).toBe(true);
  });

  it('a value is bounded: endpoints with something to report come first, then the last used', () => {
    const one = worker();
    one.attempt(targetAt('first'), limited);
    for (let index = 0; index < 3_000; index += 1) {
      nowMs += 1;
      one.attempt(targetAt(`p${index}`));
    }
    const text = one.health.snapshot('w');
    expect(text.length).toBeLessThan(cacheLimits.valueCharacters);
    const read = readSnapshot(text, nowMs);
    expect(read?.endpoints.length).toBeGreaterThan(200);
    expect(read?.endpoints.filter(({ cooldownUntilMs }) => cooldownUntilMs > nowMs)).toHaveLength(1);
  });

  it.each([
    ['no JSON', '{'],
    ['no object', '7'],
    ['null', 'null'],
    ['another version', '{"v":2,"w":"x","c":[],"e":[]}'],
    ['no list', '{"v":1,"w":"x","c":[],"e":{}}'],
  ])('a value that is %s is ignored', async (_, text) => {
    expect(readSnapshot(text, 0)).toBeNull();
    await stored.set('health:7', text, 60_000);
    const one = worker();
    await rounds([one], 2);
    expect(one.lines).toEqual([]);
  });

  it('entries that are not understood are left out, and no time is longer than an hour', () => {
    const good = ['id', 1, 1, 1e15, 0, 0, 0, [3, 4], []];
    const bad = [7, [], ['id'], ['id', -1, 0, 0, 0, 0, 0, [], []], ['id', 1, 1, 0, 0, 0, 0, ['x'], []], ['id', 1, 1, 0.5, 0, 0, 0, [], []]];
    const read = readSnapshot(JSON.stringify({ v: 1, w: 'x', c: [['p', 5], ['q'], 7], e: [good, ...bad] }), 1_000);
    expect(read?.endpoints).toHaveLength(1);
    expect(read?.endpoints[0]).toMatchObject({ openUntilMs: 3_601_000, refusedUntilMs: 1_000 });
    expect(read?.credentials).toEqual([{ provider: 'p', untilMs: 1_005 }]);
  });
});
