import { type Msg, TimeoutError } from '@nats-io/transport-node';
import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { WorkItem } from '../../bus.ts';
import { deliveryOf } from '../../messages/attempt-number.ts';
import { Retries } from '../connection/retries.ts';
import { workItem } from './work-item.ts';

/** The earliest that a timer fires. */
const EARLY_MS = 2;
/** Longer than a test takes. */
const LEASE_MS = 600_000;

it('is another attempt each time it is delivered, also where the broker counts two deliveries alike', () => {
  const link = {
    isCluster: true,
    retries: { run: () => Promise.reject(new Error('not asked')), assertOpen: () => {} },
    requests: { ask: () => Promise.reject(new Error('not asked')) },
  };
  const fields = {
    kind: 'router.call',
    messageId: 'c1',
    body: '',
    storedAtMs: 0,
    reply: 'reply',
    deliveredAt: 0,
    ackWaitMs: 50,
    budgetMs: 50,
    log: silentLog,
  } as const;
  const attempts = [1, 1, 2].map((delivery) => workItem({ ...fields, link, delivery }).attempt ?? 0);

  expect(new Set(attempts).size).toBe(3);
  expect(attempts.map(deliveryOf)).toEqual([1, 1, 2]);
  // Those of dispatches are their delivery numbers.
  expect(Math.min(...attempts)).toBeGreaterThan(100);
});

it('reports a lease as lost that could not be extended at the broker, though its timer fires a little early', async () => {
  /** A broker that is away for the whole budget. */
  const run = (what: string, budgetMs: number) =>
    new Promise<never>((_, reject) => {
      const endsAt = performance.now() + budgetMs - EARLY_MS;
      const look = () => {
        if (performance.now() >= endsAt) reject(new SwitchyardError('service.unreachable', `did not ${what}`));
        else setImmediate(look);
      };
      look();
    });
  const link = { isCluster: false, retries: { run, assertOpen: () => {} }, requests: { ask: () => Promise.reject(new Error('not asked')) } };
  const fields = { kind: 'tool', messageId: 'w1', body: '', delivery: 1, storedAtMs: 0, reply: 'reply', budgetMs: 1_000, log: silentLog } as const;
  const item = workItem({ ...fields, link, deliveredAt: performance.now(), ackWaitMs: 50 });

  await expect(item.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
});

it.each([
  [0, []],
  [LEASE_MS, [{ lease: 'lost', kind: 'tool', message_id: 'w1', delivery: 2, loop_late_ms: expect.any(Number) }]],
])('logs an ack that is confirmed after the lease, since the item may be delivered again: %s ms after the delivery', async (sinceMs, lines) => {
  const warned: unknown[] = [];
  const run = <Value>(_what: string, budgetMs: number, request: (timeoutMs: number, leftMs: number, isGivenUp: () => boolean) => Promise<Value>) =>
    request(budgetMs, budgetMs, () => false);
  const link = { isCluster: false, retries: { run, assertOpen: () => {} }, requests: { ask: async () => ({}) as Msg } };
  const log = { ...silentLog, warn: (fields: unknown) => warned.push(fields) };
  const fields = { kind: 'tool', messageId: 'w1', body: '', delivery: 2, storedAtMs: 0, reply: 'reply', budgetMs: 1_000, log } as const;
  const item = workItem({ ...fields, link, deliveredAt: performance.now() - sinceMs, ackWaitMs: LEASE_MS });

  await item.ack();
  expect(warned).toEqual(lines);
});

/** @returns an item, and the times of its attempts, of which the first is not answered in a cluster */
function notAnswered(isCluster: boolean) {
  const timeouts: number[] = [];
  const ask = async (_reply: string, _verb: string, options: { timeoutMs: number }) => {
    timeouts.push(options.timeoutMs);
    if (isCluster && timeouts.length === 1) throw new TimeoutError();
    return {} as Msg;
  };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
  const fields = { kind: 'tool', messageId: 'w1', body: '', delivery: 1, storedAtMs: 0, reply: 'reply', budgetMs: 60_000, log: silentLog } as const;
  const item = workItem({ ...fields, link: { isCluster, retries, requests: { ask } }, deliveredAt: performance.now(), ackWaitMs: 600_000 });
  return { item, timeouts };
}

describe('an extension of a lease that is not answered', () => {
  it.each([
    { what: 'is sent again in a cluster, whose next leader answers it', isCluster: true, sent: 2, timeoutMs: 1_000 },
    { what: 'has the time of an attempt at a single server', isCluster: false, sent: 1, timeoutMs: 5_000 },
  ])('$what', async ({ isCluster, sent, timeoutMs }) => {
    const { item, timeouts } = notAnswered(isCluster);
    await item.working();

    expect(timeouts).toHaveLength(sent);
    expect(timeouts[0]).toBe(timeoutMs);
  });
});

it.each([
  { what: 'an ack', settle: (item: WorkItem) => item.ack(), timeoutMs: 1_000 },
  { what: 'a drop', settle: (item: WorkItem) => item.term('done'), timeoutMs: 1_000 },
  { what: 'what is given back, which a second time would queue an item that another worker has,', settle: (item: WorkItem) => item.nak(0), timeoutMs: 4_000 },
])('$what has $timeoutMs ms in a cluster before it is sent again', async ({ settle, timeoutMs }) => {
  const { item, timeouts } = notAnswered(true);
  await settle(item);

  expect(timeouts).toEqual([timeoutMs, timeoutMs]);
});
