import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { RunningItem } from '#services/work/running-items.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { TokenCorrections } from '#shared/rates/token-corrections.ts';
import { emptyAnswer } from '#shared/surfaces/answer.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import type { Bill } from './call/usage.ts';
import { CallRecord } from './call-record.ts';

const USED = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const ENDING = { how: 'completed' as const, answer: null, bill: { usage: USED, costNano: 0, isEstimated: false } };

describe('a call whose worker died', () => {
  const prices = { prompt: '1', completion: '10', web_search: '0.01', tiers: { priority: { prompt: '2', completion: '20' } } };
  const searching = { request: { messages: [{ role: 'user', content: 'hi' }], web_search_options: {} } };
  const dear = { request: { messages: [{ role: 'user', content: 'hi' }], provider_options: { p: { service_tier: 'priority' } } } };

  /** At its one endpoint. */
  function lost(call: object, at: { kind: string; supported_parameters?: string[] }, interim: object | null = null): Bill | undefined {
    const { kind, ...endpoint } = at;
    const model = { id: 'acme/large' };
    const of = { endpoint: { provider: 'p', upstream_model: 'm', prices, ...endpoint }, provider: { slug: 'p', name: 'P', kind } };
    const catalogue = { names: { resolve: () => ({ model }) }, modelEndpoints: new Map([[model, [of]]]) };
    const record = new CallRecord({ call: { maxTokens: null, reserved: true, ...call }, attempts: [] } as never, { catalogue } as never);
    const answer = { ...emptyAnswer(false), textChars: 4_000 };
    return record.lost({ answer, model: 'acme/large', providerName: 'P', cost: null }, interim as never)?.bill;
  }

  it('is billed by what its endpoint was sent of the request', () => {
    // One token of the prompt, and 1,000 of the text.
    const plain = 1_000 + 1_000 * 10_000;
    expect(lost(searching, { kind: 'openai-compatible' })?.costNano).toBe(plain + 10_000_000);
    expect(lost(searching, { kind: 'openai-compatible', supported_parameters: ['max_tokens'] })?.costNano).toBe(plain);
    expect(lost(searching, { kind: 'anthropic' })?.costNano).toBe(plain);
    expect(lost(dear, { kind: 'openai-compatible' })?.costNano).toBe(2 * plain);
    expect(lost({ ...dear, maxTokens: 100 }, { kind: 'openai-compatible' })?.usage.completion_tokens).toBe(100);
  });

  it('is billed by its interim record, and by the prices of its tier for what was shown behind it', () => {
    const record = { tokens: { prompt: 9, completion: 400, reasoning: 0, cached: 0, cacheWrite: 0 }, costNano: 5, estimated: true, serviceTier: null };
    const served = { model: 'acme/large', provider: 'p', providerName: 'P' };
    const billed = (serviceTier: string | null) => lost(dear, { kind: 'openai-compatible' }, { ...record, ...served, serviceTier })?.costNano;
    expect(billed('priority')).toBe(5 + 600 * 20_000);
    expect(billed(null)).toBe(5 + 600 * 20_000);
    expect(billed('default')).toBe(5 + 600 * 10_000);
  });
});

/** One call, whose deliveries are executed by workers that share a cache. */
class Deliveries {
  readonly counts = new Map<string, number>();
  readonly corrections = new TokenCorrections({
    increment: async (key, by) => {
      this.counts.set(key, (this.counts.get(key) ?? 0) + by);
      return this.counts.get(key) ?? 0;
    },
  });
  readonly #createdAtMs = Date.now();

  /** @param append of the usage log */
  begin(delivery: number, append: () => Promise<void>): CallRecord {
    const call = {
      ...{ v: 1, callId: 'gen-1', origin: 'gw', want: 'body', surface: 'chat-completions', keyId: 'k', reserved: true, countedTokens: 1_000 },
      ...{ createdAtMs: this.#createdAtMs, deadlineAtMs: this.#createdAtMs + 60_000, detached: false, republished: false, traceparent: null },
      ...{ maxTokens: null, reply: null, request: { messages: [{ role: 'user', content: 'hi' }] } },
    };
    const running = { delivery, isLeaseLost: false, isCancelled: () => false, leaseLost: AbortSignal.timeout(0) } as unknown as RunningItem;
    const deps = {
      ...{ bus: { usage: { append } }, tokenCorrections: this.corrections, catalogue: {}, clock: { ...systemClock, nowMs: () => this.#createdAtMs } },
      ...{ log: silentLog, metrics: noMetrics },
    };
    return new CallRecord({ call, attempts: [], running, rated: null, isBilledElsewhere: false } as never, deps as never);
  }

  /** Of the tokens of the key, sent to the cache. */
  async corrected(): Promise<number[]> {
    // What the cache has answered by then is summed.
    await setImmediate();
    this.corrections.flush();
    return [...this.counts].filter(([key]) => key.startsWith('rate:tokens:')).map(([, by]) => by);
  }
}

const away = async () => {
  throw new SwitchyardError('service.not_ready', 'The usage log is away');
};

it('corrects the tokens of its key once its record is stored', async () => {
  const deliveries = new Deliveries();
  let store = () => {};
  const record = deliveries.begin(1, () => new Promise<void>((resolve) => (store = resolve)));
  const stored = record.store(ENDING);
  expect(await deliveries.corrected()).toEqual([]);
  store();
  await stored;
  expect(await deliveries.corrected()).toEqual([7 - 1_000]);
});

it('leaves the correction to the next delivery when its record could not be stored', async () => {
  const deliveries = new Deliveries();
  const first = deliveries.begin(1, away);
  await expect(first.store(ENDING)).rejects.toMatchObject({ code: 'service.not_ready' });
  first.leaveCorrection();
  expect(await deliveries.corrected()).toEqual([]);
  await deliveries.begin(2, async () => {}).store(ENDING);
  expect(await deliveries.corrected()).toEqual([7 - 1_000]);
});

it('tells the next delivery of its correction', async () => {
  const deliveries = new Deliveries();
  const first = deliveries.begin(1, async () => {});
  await first.store(ENDING);
  first.leaveCorrection();
  await deliveries.begin(2, async () => {}).store(ENDING);
  expect(await deliveries.corrected()).toEqual([7 - 1_000]);
});
