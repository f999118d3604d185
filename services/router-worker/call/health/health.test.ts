import { describe, expect, it } from 'vitest';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { recordedLog } from '../../test-support/recorded-log.ts';
import { Health, type HealthTarget } from './health.ts';
import { OthersHealth } from './others-health.ts';

const unavailable = new SwitchyardError('router.provider_unavailable', 'it is down');
const limited = (retryAfterMs?: number) =>
  new SwitchyardError('router.provider_rate_limited', 'too many', { details: { status: 429, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } });
const refused = (status: number) => new SwitchyardError('router.provider_misconfigured', 'no', { details: { status } });

function targetAt(provider: string, upstream: string, speed: EndpointConfig['speed'] = undefined): HealthTarget {
  const endpoint: EndpointConfig = { provider, upstream_model: upstream, ...(speed === undefined ? {} : { speed }) };
  return { model: { id: `m/${upstream}` }, endpoint, provider: { slug: provider } };
}

/** One worker's health under a clock of its own. */
function worker(metrics = noMetrics) {
  let nowMs = 1_000_000;
  const { log, lines } = recordedLog();
  const health = new Health({ clock: { nowMs: () => nowMs }, log, metrics });
  const attempt = (target: HealthTarget, error: unknown = null, times = 1) => {
    for (let time = 0; time < times; time += 1) {
      const attempted = health.begin(target);
      if (error === null) attempted.answered();
      attempted.end(error === null ? { how: 'succeeded', completionTokens: null } : { how: 'failed', error });
    }
  };
  const stateOf = (target: HealthTarget) => {
    const { isHealthy, isOpen } = health.of(target);
    return `${isHealthy ? 'healthy' : 'unhealthy'}${isOpen ? ', open' : ''}`;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { health, attempt, stateOf, pass, lines, at: () => nowMs };
}

const east = targetAt('east', 'a');
const west = targetAt('west', 'a');
const eastB = targetAt('east', 'b');

describe('the health of an endpoint', () => {
  it('is good as long as nothing is known', () => {
    expect(worker().health.of(east)).toEqual({ isHealthy: true, isOpen: false, tokensPerSecond: null, firstTokenSeconds: null });
  });

  it('is bad after five failures in a row, for 15 s; then one trial decides', () => {
    const { attempt, stateOf, pass, health, lines } = worker();
    attempt(east);
    attempt(east, unavailable, 4);
    expect(stateOf(east)).toBe('healthy');
    attempt(east, unavailable);
    expect([stateOf(east), stateOf(west), stateOf(eastB)]).toEqual(['unhealthy, open', 'healthy', 'healthy']);
    pass(14_999);
    expect(stateOf(east)).toBe('unhealthy, open');
    pass(1);
    expect(stateOf(east)).toBe('healthy');
    const trial = health.begin(east);
    expect(stateOf(east)).toBe('unhealthy, open');
    trial.end({ how: 'failed', error: unavailable });
    expect(stateOf(east)).toBe('unhealthy, open');
    pass(15_000);
    health.begin(east).end({ how: 'aborted' });
    expect(stateOf(east)).toBe('healthy');
    health.begin(east).answered();
    expect(stateOf(east)).toBe('healthy');
    const changes = lines.map(({ level, message, fields }) => ({ level, message, fields }));
    expect(changes).toEqual([
      { level: 'warn', message: 'an endpoint fails: it is tried last until it answers again', fields: { model: 'm/a', provider: 'east' } },
      { level: 'info', message: 'an endpoint that failed answers again', fields: { model: 'm/a', provider: 'east' } },
    ]);
  });

  it('is bad while more than a quarter of at least ten attempts of 30 s have failed, and its breaker is closed', () => {
    const { attempt, stateOf, pass } = worker();
    for (let round = 0; round < 3; round += 1) {
      attempt(east, null, 2);
      expect(stateOf(east)).toBe('healthy');
      attempt(east, unavailable, 1);
    }
    attempt(east);
    expect(stateOf(east)).toBe('unhealthy');
    attempt(east, null, 2);
    expect(stateOf(east)).toBe('healthy');
    attempt(east, unavailable, 2);
    expect(stateOf(east)).toBe('unhealthy');
    pass(30_000);
    expect(stateOf(east)).toBe('healthy');
  });

  it.each([
    ['no time', undefined, 10_000],
    ['a time', 20_000, 20_000],
    ['no time at all', 0, 1_000],
    ['a day', 86_400_000, 3_600_000],
  ])('is that of a cooldown after a 429 with %s, which is no outage', (_, retryAfterMs, forMs) => {
    const { attempt, stateOf, pass, lines } = worker();
    attempt(east, limited(retryAfterMs), 12);
    expect(stateOf(east)).toBe('healthy, open');
    pass(forMs - 1);
    expect(stateOf(east)).toBe('healthy, open');
    pass(1);
    expect(stateOf(east)).toBe('healthy');
    expect(lines.map(({ fields }) => fields)).toEqual([{ model: 'm/a', provider: 'east', for_ms: forMs }]);
  });

  it('has no shorter cooldown after a second 429, and none after a call that was taken meanwhile', () => {
    const { attempt, stateOf, pass, health } = worker();
    const early = health.begin(east);
    pass(1);
    attempt(east, limited(20_000));
    attempt(east, limited(2_000));
    pass(10_000);
    early.end({ how: 'succeeded', completionTokens: 1 });
    expect(stateOf(east)).toBe('healthy, open');
    attempt(east);
    expect(stateOf(east)).toBe('healthy');
  });

  it.each([401, 402, 429])('a credential that is refused with %i concerns all endpoints of its provider, until a trial is accepted', (status) => {
    const { attempt, stateOf, pass, lines } = worker();
    attempt(east, refused(status));
    expect([stateOf(east), stateOf(eastB), stateOf(west)]).toEqual(['healthy, open', 'healthy, open', 'healthy']);
    pass(60_000);
    expect(stateOf(eastB)).toBe('healthy');
    attempt(eastB, refused(status));
    expect(stateOf(east)).toBe('healthy, open');
    pass(60_000);
    attempt(east);
    expect([stateOf(east), stateOf(eastB)]).toEqual(['healthy', 'healthy']);
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['error', { provider: 'east', status }],
      ['info', { provider: 'east' }],
    ]);
  });

  it.each([403, 404, 410])('a model that is refused with %i three times in a row concerns this endpoint, until a trial is accepted', (status) => {
    const { attempt, stateOf, pass, lines } = worker();
    attempt(east, refused(status), 2);
    attempt(east);
    attempt(east, refused(status), 2);
    expect(stateOf(east)).toBe('healthy');
    attempt(east, refused(status));
    expect([stateOf(east), stateOf(eastB)]).toEqual(['healthy, open', 'healthy']);
    pass(60_000);
    attempt(east);
    expect(stateOf(east)).toBe('healthy');
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['error', { model: 'm/a', provider: 'east', status }],
      ['info', { model: 'm/a', provider: 'east' }],
    ]);
  });

  it('is exported as a metric, which exists only while there is something to say', async () => {
    const metrics = openMetrics();
    const { attempt, pass, health } = worker(metrics);
    const down = async () => (await metrics.text()).split('\n').filter((line) => line.startsWith('switchyard_endpoints_down{'));
    attempt(east);
    expect(await down()).toEqual([]);
    attempt(east, unavailable, 5);
    attempt(west, refused(404), 3);
    attempt(eastB, limited());
    expect(await down()).toEqual([
      'switchyard_endpoints_down{model="m/a",provider="east",reason="outage"} 1',
      'switchyard_endpoints_down{model="m/a",provider="west",reason="model"} 1',
      'switchyard_endpoints_down{model="m/b",provider="east",reason="rate_limit"} 1',
    ]);
    attempt(east, refused(401));
    expect((await down()).filter((line) => line.includes('credential'))).toHaveLength(2);
    pass(400_000);
    health.snapshot('w');
    // An alarm stays until the provider accepts a call.
    expect(await down()).toEqual(['switchyard_endpoints_down{model="m/a",provider="west",reason="model"} 1']);
    health.stop();
    expect(await down()).toEqual([]);
  });
});

describe('measured speeds', () => {
  /** A call with so many seconds to the first token, and so many tokens per second for two seconds. */
  const call = ({ health, pass }: ReturnType<typeof worker>, target: HealthTarget, seconds: number, rate: number) => {
    const attempt = health.begin(target);
    pass(seconds * 1_000);
    attempt.answered();
    attempt.answered();
    pass(2_000);
    attempt.end({ how: 'succeeded', completionTokens: 2 * rate });
  };

  it('count from 20 samples on; before that the configured ones do', () => {
    const one = worker();
    const target = targetAt('east', 'c', { tokens_per_second: 70, first_token_seconds: 0.3 });
    for (let time = 0; time < 19; time += 1) call(one, target, 1, 40);
    one.pass(1_000);
    const all = (value: number) => ({ p50: value, p75: value, p90: value, p99: value });
    expect(one.health.of(target)).toMatchObject({ tokensPerSecond: all(70), firstTokenSeconds: all(0.3) });
    expect(one.health.firstTokenP95Ms(target)).toBeNull();
    call(one, target, 1, 40);
    one.pass(1_000);
    const { tokensPerSecond, firstTokenSeconds } = one.health.of(target);
    expect(tokensPerSecond?.p50 ?? 0).toBeCloseTo(40, -1);
    expect(firstTokenSeconds?.p50 ?? 0).toBeCloseTo(1, 0);
    one.pass(300_000);
    expect(one.health.of(target)).toMatchObject({ tokensPerSecond: all(70), firstTokenSeconds: all(0.3) });
  });

  it('have percentiles of which a higher one is worse', () => {
    const one = worker();
    for (let time = 1; time <= 50; time += 1) call(one, east, time / 50, 2 * time);
    one.pass(1_000);
    const { tokensPerSecond, firstTokenSeconds } = one.health.of(east);
    const near = (found: number | undefined, expected: number) => expect(Math.abs((found ?? 0) / expected - 1), `${found} for ${expected}`).toBeLessThan(0.3);
    near(firstTokenSeconds?.p50, 0.5);
    near(firstTokenSeconds?.p90, 0.9);
    near(firstTokenSeconds?.p99, 1);
    near(tokensPerSecond?.p50, 50);
    near(tokensPerSecond?.p90, 10);
    near(tokensPerSecond?.p99, 2);
    near(one.health.firstTokenP95Ms(east) ?? 0, 950);
  });

  it('have the time of an attempt that another outran, and nothing of one that was aborted or failed', () => {
    const one = worker();
    for (let time = 0; time < 20; time += 1) {
      const attempt = one.health.begin(east);
      one.pass(500);
      attempt.outrun();
      attempt.end({ how: 'aborted' });
    }
    one.health.begin(west).end({ how: 'aborted' });
    one.pass(1_000);
    expect((one.health.of(east).firstTokenSeconds?.p50 ?? 0) / 0.5).toBeCloseTo(1, 0);
    expect(one.health.of(east).tokensPerSecond).toBeNull();
    expect(one.health.of(west).firstTokenSeconds).toBeNull();
  });

  it('of an answer in one piece count its tokens over the whole attempt', () => {
    const one = worker();
    for (let time = 0; time < 20; time += 1) {
      const attempt = one.health.begin(east);
      one.pass(2_000);
      attempt.answered();
      attempt.end({ how: 'succeeded', completionTokens: 100 });
    }
    one.pass(1_000);
    expect((one.health.of(east).tokensPerSecond?.p50 ?? 0) / 50).toBeCloseTo(1, 0);
  });
});

it('forgets what other workers have reported when it learns that there is nothing', () => {
  const { health, stateOf, at } = worker();
  const endpoint = {
    id: 'none',
    samples: 0,
    failures: 0,
    openUntilMs: 0,
    refusedUntilMs: 0,
    cooldownUntilMs: 0,
    stickyUntilMs: 0,
    firstToken: [],
    throughput: [],
  };
  health.learn(new OthersHealth([{ worker: 'other', endpoints: [endpoint], credentials: [{ provider: 'east', untilMs: at() + 5_000 }] }]));
  expect(stateOf(east)).toBe('healthy, open');
  health.learn(new OthersHealth());
  expect(stateOf(east)).toBe('healthy');
});
