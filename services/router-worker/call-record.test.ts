import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { RunningItem } from '#services/work/running-items.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { TokenCorrections } from '#shared/rates/token-corrections.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { CallRecord } from './call-record.ts';

const USED = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const ENDING = { how: 'completed' as const, answer: null, bill: { usage: USED, costNano: 0, isEstimated: false } };

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
