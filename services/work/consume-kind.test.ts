import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { effectLease } from '#bus/renew-lease.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { noteText } from '#shared/lifecycle/heap.ts';
import type { Database } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { consumeKind } from './consume-kind.ts';
import { InvalidItem, type ItemKind, type Refusal } from './item-kind.ts';
import { itemEndReasons, type RunningItem, RunningItems } from './running-items.ts';

vi.mock('#shared/lifecycle/heap.ts', { spy: true });

const SESSION = 'ses_1';

interface Sample {
  v: number;
  id: string;
  text: string;
}

describe('an item of any kind', () => {
  let running: RunningItems;
  let deliver: (item: WorkItem) => Promise<void>;
  let settled: string[];
  let commands: Record<string, unknown>[];
  let letters: unknown[][];
  let isOpen: boolean | null;
  let storesCancelled: boolean;
  let warned: unknown[][];
  let counted: unknown[][];
  let refusals: Refusal[];
  let execute: (work: Sample, running: RunningItem) => Promise<string | null | 'again'>;

  const kind: ItemKind<Sample, string> = {
    name: 'tool',
    concurrency: 1,
    lease: effectLease,
    bodyBytes: null,
    newestVersion: 1,
    needsEffectRow: true,
    deadLetters: 'tool',
    writesOwnLine: false,
    get storesCancelled() {
      return storesCancelled;
    },
    endReasons: itemEndReasons,
    parse: (body) => ((body as Sample).text === '' ? new InvalidItem('no text') : (body as Sample)),
    header: ({ id }) => ({ id, sessionId: SESSION, republished: false, traceparent: null }),
    ids: ({ id }) => ({ effect_id: id }),
    remainingMs: ({ text }) => (text === 'late' ? 0 : 60_000),
    execute: (work, item) => execute(work, item),
    refuse: async (_, refusal) => {
      refusals.push(refusal);
      return `refused: ${refusal.why}`;
    },
    commandOf: (_, reason) => ({ type: 'delivery.reported', deliveryId: 'd', attempts: 1, outcome: 'failed', reason, retryAfterMs: null }),
    whenTooLarge: ({ code }) => code,
  };

  beforeEach(() => {
    running = new RunningItems();
    [settled, commands, letters, refusals, warned, counted] = [[], [], [], [], [], []];
    isOpen = true;
    storesCancelled = false;
    execute = async ({ text }) => text;
    const database = {
      query: async (statement: string | { name: string }, parameters: unknown[]) => {
        if (typeof statement === 'string' || statement.name !== 'store-dead-letter') return { rows: [{ open: isOpen }], rowCount: 1 };
        letters.push(parameters);
        return { rows: [], rowCount: 1 };
      },
    } as unknown as Database;
    const bus = {
      work: {
        consume: (_kind: string, _options: unknown, handler: typeof deliver) => {
          deliver = handler;
          return { stop: async () => {} };
        },
      },
      commands: {
        append: async (_partition: number, messageId: string, body: string) => {
          if (body.length > 1_000) throw new SwitchyardError('bus.body_too_large', 'too large');
          commands.push({ messageId, ...JSON.parse(body) });
          settled.push('command');
          return { sequence: 1, duplicate: false };
        },
      },
    } as unknown as Bus;
    consumeKind(kind, {
      bus,
      database,
      clock: systemClock,
      log: { ...silentLog, warn: (...line) => warned.push(line) },
      metrics: { ...noMetrics, add: (key, labels) => counted.push([key, labels]) },
      tracing: noTracing,
      running,
    });
  });

  const given = (work: Partial<Sample> = {}, deliveryCount = 1): WorkItem => ({
    messageId: 'eff_1',
    body: JSON.stringify({ v: 1, id: 'eff_1', text: 'done', ...work }),
    deliveryCount,
    publishedAtMs: systemClock.nowMs(),
    ack: async () => void settled.push('ack'),
    nak: async (delayMs) => void settled.push(`nak ${delayMs}`),
    term: async (reason) => void settled.push(`term ${reason}`),
    working: async () => {},
  });
  const fails = async () => {
    throw new Error('no use');
  };

  it('is reported under the effect’s id, and acked only then', async () => {
    await deliver(given());
    expect(settled).toEqual(['command', 'ack']);
    expect(commands).toMatchObject([{ messageId: 'eff_1', commandId: 'eff_1', callId: 'eff_1', sessionId: SESSION, reason: 'done' }]);
    expect(running.count).toBe(0);
  });

  it('is executed as the attempt that the bus states, or else as its delivery', async () => {
    const attempts: unknown[] = [];
    execute = async (_, { attempt, delivery }) => {
      attempts.push([attempt, delivery]);
      return null;
    };
    await deliver({ ...given({}, 2), attempt: 2_417 });
    await deliver(given({}, 2));
    expect(attempts).toEqual([
      [2_417, 2],
      [2, 2],
    ]);
  });

  it('has its length noted for the heap', async () => {
    vi.mocked(noteText).mockClear();
    const item = given({ text: 'x'.repeat(500) });
    await deliver(item);
    expect(vi.mocked(noteText).mock.calls).toEqual([[item.body.length]]);
  });

  it('is left to a newer worker, or dropped when it is invalid', async () => {
    await deliver(given({ v: 2 }));
    await deliver(given({ text: '' }));
    expect(settled).toEqual(['nak 5000', 'term no text']);
  });

  it.each([false, null])('is acked without being executed when a redelivery finds its effect closed or gone (%s)', async (found) => {
    isOpen = found;
    await deliver(given({}, 2));
    expect({ settled, commands }).toEqual({ settled: ['ack'], commands: [] });
  });

  it('is redelivered with a longer pause after each failure', async () => {
    execute = fails;
    for (const delivery of [1, 2, 3, 4]) await deliver(given({}, delivery));
    expect(settled).toEqual(['nak 1000', 'nak 2000', 'nak 4000', 'nak 8000']);
    expect(letters).toEqual([]);
  });

  it('is given up at the fifth failure, with a dead letter that has the reason and the bytes', async () => {
    execute = fails;
    await deliver(given({}, 5));
    expect(settled).toEqual(['command', 'ack']);
    expect(refusals).toEqual([{ why: 'given-up', reason: 'Error: no use' }]);
    expect(letters).toEqual([['eff_1', expect.any(Number), 'tool', 'Error: no use', given().body, 'ses_1']]);
  });

  it('is given up without being executed when five workers have died of it', async () => {
    await deliver(given({}, 6));
    expect(refusals).toEqual([{ why: 'given-up', reason: 'its worker died 5 times' }]);
    expect(letters).toHaveLength(1);
  });

  it('is refused past its deadline, also when it would be given up', async () => {
    await deliver(given({ text: 'late' }, 6));
    expect(refusals).toEqual([{ why: 'deadline' }]);
    expect(letters).toEqual([]);
  });

  it('is redelivered when its outcome could not be published, and at once when its lease was lost', async () => {
    execute = async () => 'again';
    await deliver(given());
    execute = async (_, item) => {
      item.end('lease-lost');
      throw item.ended.reason;
    };
    await deliver(given({}, 5));
    expect({ settled, commands }).toEqual({ settled: ['nak 1000', 'nak 0'], commands: [] });
    expect(warned).toEqual([
      [
        { effect_id: 'eff_1', lease: 'lost', kind: 'tool', message_id: 'eff_1', delivery: 5, loop_late_ms: expect.any(Number) },
        'a work item whose lease was lost is left to its next delivery',
      ],
    ]);
    expect(counted).toEqual([
      ['redeliveries', { kind: 'tool' }],
      ['leasesLost', { kind: 'tool' }],
    ]);
  });

  it('is acked and not reported when it was cancelled', async () => {
    execute = async (_, item) => {
      item.end('cancelled');
      return 'too late';
    };
    await deliver(given());
    expect({ settled, commands }).toEqual({ settled: ['ack'], commands: [] });
  });

  it('is redelivered when it was cancelled and its end could not be stored, if its kind stores anything then', async () => {
    execute = async (_, item) => {
      item.end('cancelled');
      throw new Error('not stored');
    };
    await deliver(given());
    storesCancelled = true;
    await deliver(given({}, 2));
    expect({ settled, commands }).toEqual({ settled: ['ack', 'nak 2000'], commands: [] });
  });

  it('is reported as a failure when its result is too large', async () => {
    await deliver(given({ text: 'x'.repeat(2_000) }));
    expect(commands).toMatchObject([{ reason: 'bus.body_too_large' }]);
  });
});
