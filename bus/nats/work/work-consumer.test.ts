import type { Msg } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { WorkItem } from '../../bus.ts';
import { gate } from '../../conformance/under-test.ts';
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
    ...{ handler: async () => {}, store: async () => ({ duplicate: false }), onStored: () => {}, pauseDetector: {} as PauseDetector },
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

interface Opened {
  consumer: WorkConsumer;
  /** Sent for items. */
  verbs: string[];
  lines: object[];
  /** Delivers the only item. */
  deliver(delivery: number): void;
}

/** A consumer at a broker that answers all. @param sinceMs from a delivery to its reading */
async function openAtBroker(handler: (item: WorkItem) => Promise<void>, sinceMs = 0): Promise<Opened> {
  const verbs: string[] = [];
  const lines: object[] = [];
  let receive = (_error: Error | null, _message: Msg) => {};
  const { signal: session } = new AbortController();
  const subscribe = (_: string, { callback }: { callback: typeof receive }) => {
    receive = callback;
    return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
  };
  const publish = (subject: string, body: string) => {
    if (subject.startsWith('$JS.ACK.')) verbs.push(body);
  };
  const run = (_what: string, budgetMs: number, request: (timeoutMs: number) => Promise<unknown>) => request(budgetMs);
  const retries = { run, runWithin: async () => {}, assertOpen: () => {}, longestPauseMs: () => 1_000 };
  const link = {
    ...{ main: { subscribe, publish }, isCluster: false, inboxPrefix: '_INBOX', retries, up: async () => session },
    ...{ streams: { onRedeclare: () => () => {} }, requests: { ask: async (_reply: string, verb: string) => void verbs.push(verb) } },
  } as unknown as NatsLink;
  const line = (level: string) => (fields: object) => void lines.push({ level, ...fields });
  const log = { ...silentLog, warn: line('warn'), error: line('error') };
  const pauseDetector = { deliveredSince: () => performance.now() - sinceMs } as PauseDetector;
  const consumer = new WorkConsumer({
    ...{ link, kind: 'tool', clock: systemClock, concurrency: 4, ackWaitMs: 6_000, budgetMs: 8_000, log, pauseDetector },
    ...{ handler, store: async () => ({ duplicate: false }), onStored: () => {} },
  });
  await vi.advanceTimersByTimeAsync(1);
  const deliver = (delivery: number) =>
    receive(null, { reply: `$JS.ACK.WORK.tool.${delivery}.7.${delivery}.1790000000000000000.0`, string: () => '{}' } as unknown as Msg);
  return { consumer, verbs, lines, deliver };
}

it('DESIGN 6 rule 4: the lease of an item that was delivered before a pause is extended as it is begun, and of no other', async () => {
  const verbsAfter = async (sinceMs: number) => {
    const { consumer, verbs, deliver } = await openAtBroker(async () => {}, sinceMs);
    deliver(1);
    await vi.advanceTimersByTimeAsync(1);
    await consumer.stop();
    return verbs;
  };
  expect(await verbsAfter(5_000)).toEqual(['+WPI']);
  expect(await verbsAfter(0)).toEqual([]);
});

it('DESIGN 6: an item that is delivered again while its worker stops is not given to another one', async () => {
  const done = gate();
  const { consumer, verbs, deliver } = await openAtBroker(async (item) => {
    await done.opened;
    await item.ack();
  });
  deliver(1);
  const stopped = consumer.stop();
  deliver(2);
  done.open();
  await stopped;
  expect(verbs).toEqual(['+ACK']);
});

it('warns of an item whose lease was lost before its handler had it, as while the consumer has no leader', async () => {
  const { consumer, lines, deliver } = await openAtBroker(() => Promise.reject(new SwitchyardError('bus.lease_lost', 'lost')));
  deliver(1);
  await consumer.stop();
  expect(lines).toMatchObject([{ level: 'warn', lease: 'lost', kind: 'tool', delivery: 1 }]);
});

it.each([
  [2_000, true],
  [4_000, false],
])('DESIGN 6: an item that was delivered %i ms ago is begun before its lease is extended: %s', async (sinceMs, isAtOnce) => {
  const begun: number[] = [];
  const handler = async ({ deliveryCount }: WorkItem) => void begun.push(deliveryCount);
  const { consumer, verbs, deliver } = await openAtBroker(handler, sinceMs);
  deliver(1);
  expect([verbs, begun]).toEqual([['+WPI'], isAtOnce ? [1] : []]);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual([1]);
  await consumer.stop();
});

describe('dispatches that come at once', () => {
  let workedMs = 0;

  /** A consumer whose handler keeps the process busy. */
  async function busy(handlerMs: number, done?: Promise<void>) {
    workedMs = 0;
    const faked = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => faked() + workedMs);
    const receivers = new Map<string, (error: Error | null, message: Msg) => void>();
    const { signal: session } = new AbortController();
    const pulls: number[] = [];
    /** Each with the sequence of its item. */
    const verbs: string[] = [];
    const main = {
      flush: async () => {},
      publish: (_: string, body: string) => void pulls.push(JSON.parse(body).batch),
      subscribe: (subject: string, { callback }: { callback: (error: Error | null, message: Msg) => void }) => {
        receivers.set(subject, callback);
        return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
      },
    };
    const run = (_what: string, budgetMs: number, request: (timeoutMs: number) => Promise<unknown>) => request(budgetMs);
    const retries = { run, runWithin: async () => {}, assertOpen: () => {}, longestPauseMs: () => 1_000 };
    const link = {
      ...{ main, isUp: true, isCluster: false, inboxPrefix: '_INBOX', retries, up: async () => session },
      ...{
        streams: { onRedeclare: () => () => {} },
        requests: { ask: async (reply: string, verb: string) => void verbs.push(`${verb} ${reply.split('.')[5]}`) },
      },
    } as unknown as NatsLink;
    const begun: string[] = [];
    const stored: string[] = [];
    const reported: string[] = [];
    let pausedMs = 0;
    const handler = async ({ messageId }: WorkItem) => {
      begun.push(messageId);
      workedMs += handlerMs;
      await done;
    };
    const consumer = new WorkConsumer({
      ...{ link, kind: 'router.call', clock: systemClock, concurrency: 1_000, ackWaitMs: 6_000, budgetMs: 8_000, log: silentLog, handler },
      store: async (_kind, messageId) => {
        stored.push(messageId);
        return { duplicate: false };
      },
      onStored: (publisher, messageId) => reported.push(`${publisher} ${messageId}`),
      // Once paused, all that is read may have been delivered since the pause began.
      pauseDetector: { deliveredSince: () => performance.now() - pausedMs } as PauseDetector,
    });
    await vi.advanceTimersByTimeAsync(1);
    const dispatch = (messageId: string) =>
      receivers.get('offer.router.call')?.(null, {
        reply: `_INBOX.x.${Date.now() + (pausedMs > 0 ? -pausedMs : workedMs)}.${messageId}`,
        data: Buffer.from('{}'),
      } as unknown as Msg);
    /** In answer to the last pull. */
    const deliver = (sequence: number) =>
      [...receivers].at(-1)?.[1](null, {
        reply: `$JS.ACK.WORK.router-call.1.${sequence}.${sequence}.1790000000000000000.0`,
        headers: { code: 0, get: () => `q${sequence}` },
        string: () => '{}',
      } as unknown as Msg);
    const tick = () => vi.advanceTimersToNextTimerAsync();
    const pause = (ms: number) => {
      pausedMs = ms;
    };
    return { consumer, begun, stored, reported, pulls, verbs, dispatch, deliver, tick, pause };
  }

  afterEach(() => void vi.restoreAllMocks());

  it('DESIGN 6: are begun over several ticks, and stored for other workers where they would wait longer than a second', async () => {
    const { consumer, begun, stored, pulls, dispatch, tick } = await busy(350);
    const pulledBefore = pulls.length;
    for (let number = 0; number < 5; number += 1) dispatch(`o${number}`);
    expect([begun, stored]).toEqual([['o0'], []]);
    await tick();
    await tick();
    await tick();
    expect(begun).toEqual(['o0', 'o1', 'o2', 'o3']);
    dispatch('o5');
    expect(stored).toEqual(['o5']);
    expect(pulls.length).toBe(pulledBefore);
    await tick();
    expect(begun).toEqual(['o0', 'o1', 'o2', 'o3', 'o4']);
    dispatch('o6');
    await tick();
    expect([begun.at(-1), stored]).toEqual(['o6', ['o5']]);
    await consumer.stop();
  });

  it('DESIGN 6: pulling resumes when the last item that has waited begins, though none has ended', async () => {
    const done = gate();
    const { consumer, begun, pulls, deliver, tick } = await busy(5, done.opened);
    const [first = 0] = pulls;
    for (let sequence = 1; sequence <= first; sequence += 1) deliver(sequence);
    for (let count = 0; count < 100 && begun.length < first; count += 1) await tick();
    expect(begun).toHaveLength(first);
    expect(pulls).toEqual([125, 125]);
    done.open();
    await consumer.stop();
  });

  it('DESIGN 6: a stopping worker begins nothing that has waited: dispatches are stored, queued items are returned', async () => {
    const { consumer, begun, stored, verbs, dispatch, deliver } = await busy(350);
    dispatch('o1');
    dispatch('o2');
    deliver(7);
    const stopped = consumer.stop();
    await vi.advanceTimersByTimeAsync(10);
    await stopped;
    expect({ begun, stored, verbs }).toEqual({ begun: ['o1'], stored: ['o2'], verbs: ['-NAK 7'] });
  });

  it('DESIGN 6: are reported to their publisher once they are stored, which need not publish them then', async () => {
    const { consumer, stored, reported, dispatch, tick } = await busy(350);
    for (let number = 0; number < 5; number += 1) dispatch(`o${number}`);
    for (let ticks = 0; ticks < 3; ticks += 1) await tick();
    expect(reported).toEqual([]);
    dispatch('o5');
    await vi.advanceTimersByTimeAsync(0);
    expect([stored, reported]).toEqual([['o5'], ['x o5']]);
    await tick();
    await consumer.stop();
  });

  it('DESIGN 6: are left to their publisher when a worker without a free slot reads them after their lease', async () => {
    const { consumer, stored, dispatch, tick, pause } = await busy(350);
    for (let number = 0; number < 5; number += 1) dispatch(`o${number}`);
    for (let ticks = 0; ticks < 3; ticks += 1) await tick();
    pause(3_900);
    dispatch('o5');
    pause(4_100);
    dispatch('o6');
    expect(stored).toEqual(['o5']);
    await tick();
    await consumer.stop();
  });

  it('DESIGN 6: are stored when they have waited for half of their lease, since it would end before it can be extended', async () => {
    const { consumer, begun, stored, dispatch, tick } = await busy(900);
    for (let number = 0; number < 5; number += 1) dispatch(`o${number}`);
    for (let count = 0; count < 5; count += 1) await tick();
    expect([begun, stored]).toEqual([['o0', 'o1', 'o2', 'o3'], ['o4']]);
    await consumer.stop();
  });
});
