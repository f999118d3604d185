import type { Msg } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from '../connection/link.ts';
import { Retries } from '../connection/retries.ts';
import { UsageConsumer } from './usage-consumer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A consumer at a broker that answers no pull by itself. */
function open(everyMs: number) {
  const pulls: number[] = [];
  const handled: string[] = [];
  let receive = (_error: Error | null, _message: Msg) => {};
  let session = new AbortController();
  const lose = () => {
    session.abort();
    session = new AbortController();
  };
  const main = {
    subscribe: (_: string, { callback }: { callback: typeof receive }) => {
      receive = callback;
      return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
    },
    publish: (subject: string, body: string) => {
      if (subject.startsWith('$JS.API.CONSUMER.MSG.NEXT.')) pulls.push((JSON.parse(body) as { batch: number }).batch);
    },
  };
  const retries = new Retries({ address: 'nats://there', isCluster: false, isUp: () => true, up: async () => session.signal, redeclare: async () => {} });
  const link = {
    ...{ main, isCluster: false, isUp: true, inboxPrefix: '_INBOX', retries, up: async () => session.signal },
    ...{ streams: { onRedeclare: () => () => {} }, consumers: { declare: async () => {} }, requests: { ask: async () => {} } },
  } as unknown as NatsLink;
  const consumer = new UsageConsumer({
    ...{ link, maxBatch: 10, everyMs, ackWaitMs: 15_000, budgetMs: 8_000, log: silentLog },
    handler: async (records) => {
      for (const { messageId } of records) handled.push(messageId);
    },
  });
  const deliver = (messageId: string) => receive(null, { headers: { code: 0, get: () => messageId }, string: () => '{}', reply: 'ack' } as unknown as Msg);
  return { pulls, handled, deliver, lose, consumer };
}

it('handles a record that comes in the pause between two looks at once, and pulls none before the pause is over', async () => {
  const { pulls, handled, deliver, consumer } = open(1_000);
  await vi.advanceTimersByTimeAsync(0);
  deliver('first');
  await vi.advanceTimersByTimeAsync(500);
  expect([handled, pulls]).toEqual([['first'], [1, 9]]);

  // Of the second pull, whose time was over here and not at the broker.
  deliver('late');
  await vi.advanceTimersByTimeAsync(0);
  expect(handled).toEqual(['first', 'late']);
  await vi.advanceTimersByTimeAsync(500);
  expect(pulls).toEqual([1, 9]);
  await vi.advanceTimersByTimeAsync(100);
  expect(pulls).toEqual([1, 9, 1]);
  await consumer.stop();
});

it('pulls again at once when its connection is lost in the pause between two looks', async () => {
  const { pulls, deliver, lose, consumer } = open(600_000);
  await vi.advanceTimersByTimeAsync(0);
  deliver('first');
  await vi.advanceTimersByTimeAsync(500);
  lose();
  await vi.advanceTimersByTimeAsync(1_000);

  expect(pulls).toEqual([1, 9, 1]);
  await consumer.stop();
});
