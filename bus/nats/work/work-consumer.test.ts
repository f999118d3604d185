import type { Msg } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from '../connection/link.ts';
import { Retries } from '../connection/retries.ts';
import type { PauseDetector } from './pause-detector.ts';
import { WorkConsumer } from './work-consumer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A consumer that answers each pull with 503, as one without a leader. @param declares whether a declaration after the first one ends */
function open({ isCluster, declares }: { isCluster: boolean; declares: boolean }) {
  const seen = { declared: 0, pulled: 0 };
  let receive = (_error: Error | null, _message: Msg) => {};
  const { signal: session } = new AbortController();
  const main = {
    subscribe: (_: string, { callback }: { callback: typeof receive }) => {
      receive = callback;
      return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
    },
    publish: () => {
      seen.pulled += 1;
      const to = receive;
      queueMicrotask(() => to(null, { headers: { code: 503, get: () => '' } } as unknown as Msg));
    },
  };
  const declare = () => {
    seen.declared += 1;
    return seen.declared === 1 || declares ? Promise.resolve() : new Promise<void>(() => {});
  };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: async () => session, redeclare: async () => {} });
  const link = {
    ...{ main, isCluster, inboxPrefix: '_INBOX', retries, up: async () => session },
    ...{ streams: { onRedeclare: () => () => {} }, consumers: { declare } },
  } as unknown as NatsLink;
  const consumer = new WorkConsumer({
    ...{ link, kind: 'tool', clock: systemClock, concurrency: 4, ackWaitMs: 6_000, budgetMs: 8_000, log: silentLog },
    ...{ handler: async () => {}, store: async () => ({ duplicate: false }), pauseDetector: {} as PauseDetector },
  });
  return { seen, consumer };
}

describe('a consumer of work whose pulls find no leader', () => {
  it('DESIGN 3: pulls again in a cluster, though the leader that declares it is not elected yet', async () => {
    const { seen, consumer } = open({ isCluster: true, declares: false });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(seen.pulled).toBeGreaterThan(5);
    expect(seen.declared).toBe(2);
    await consumer.stop();
  });

  it('is declared again, since it may be gone', async () => {
    const { seen, consumer } = open({ isCluster: true, declares: true });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(seen.declared).toBe(seen.pulled);
    await consumer.stop();
  });

  it('is declared first at a single server, which would have restarted without it', async () => {
    const { seen, consumer } = open({ isCluster: false, declares: false });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(seen).toEqual({ declared: 2, pulled: 1 });
    await consumer.stop();
  });

  it('costs the broker no more than a few pulls a second', async () => {
    const { seen, consumer } = open({ isCluster: true, declares: true });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen.pulled).toBeLessThan(60);
    await consumer.stop();
  });
});

/** A consumer that has an item delivered by a broker that answers all, and the verbs that it sends for the item. @param sinceMs from the delivery to its reading */
async function afterDelivery(sinceMs: number): Promise<string[]> {
  const verbs: string[] = [];
  let receive = (_error: Error | null, _message: Msg) => {};
  const { signal: session } = new AbortController();
  const subscribe = (_: string, { callback }: { callback: typeof receive }) => {
    receive = callback;
    return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
  };
  const run = (_what: string, budgetMs: number, request: (timeoutMs: number) => Promise<unknown>) => request(budgetMs);
  const retries = { run, runWithin: async () => {}, assertOpen: () => {}, longestPauseMs: () => 1_000 };
  const link = {
    ...{ main: { subscribe, publish: () => {} }, isCluster: false, inboxPrefix: '_INBOX', retries, up: async () => session },
    ...{ streams: { onRedeclare: () => () => {} }, requests: { ask: async (_reply: string, verb: string) => void verbs.push(verb) } },
  } as unknown as NatsLink;
  const pauseDetector = { deliveredSince: () => performance.now() - sinceMs } as PauseDetector;
  const consumer = new WorkConsumer({
    ...{ link, kind: 'tool', clock: systemClock, concurrency: 4, ackWaitMs: 6_000, budgetMs: 8_000, log: silentLog, pauseDetector },
    ...{ handler: async () => {}, store: async () => ({ duplicate: false }) },
  });
  await vi.advanceTimersByTimeAsync(1);
  receive(null, { reply: '$JS.ACK.WORK.tool.1.7.7.1790000000000000000.0', string: () => '{}' } as unknown as Msg);
  await vi.advanceTimersByTimeAsync(1);
  await consumer.stop();
  return verbs;
}

it('DESIGN 6 rule 4: the lease of an item that was delivered before a pause is extended as it is begun, and of no other', async () => {
  expect(await afterDelivery(5_000)).toEqual(['+WPI']);
  expect(await afterDelivery(0)).toEqual([]);
});
