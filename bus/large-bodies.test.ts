import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Bus, StoredCommand, WorkItem } from './bus.ts';
import { gate, START } from './conformance/under-test.ts';
import { withLargeBodies } from './large-bodies.ts';

const MEBIBYTE = 1024 * 1024;

/** A bus with blobs only, which records its handlers. */
function innerBus() {
  const blobs = new Map<string, Uint8Array>();
  const appended: string[] = [];
  const held: { read?: (commands: StoredCommand[]) => Promise<void>; restart?: () => void; consume?: (item: WorkItem) => Promise<void>; blobsFail: boolean } = {
    blobsFail: false,
  };
  const subscription = { stop: async () => {}, ready: async () => {} };
  const bus: Bus = {
    commands: {
      append: async (_partition, _messageId, body) => ({ sequence: appended.push(body), duplicate: false }),
      read: (_partition, _after, handler, options) => {
        held.read = handler;
        if (options?.onRestart !== undefined) held.restart = options.onRestart;
        return subscription;
      },
      at: async () => null,
      lastOf: async () => appended.length,
      state: async () => ({ created: 'x', firstSequence: 1, lastSequence: appended.length }),
      purge: async () => {},
    },
    work: {
      publish: async (_kind, _messageId, body) => ({ duplicate: appended.push(body) === 0 }),
      dispatch: (_kind, _messageId, body) => void appended.push(Buffer.from(body).toString()),
      maxDispatchBytes: () => MEBIBYTE,
      onRefused: () => subscription,
      onStored: () => subscription,
      earliestDispatchAtMs: 0,
      consume: (_kind, _options, handler) => {
        held.consume = handler;
        return subscription;
      },
      createdAtMs: async () => 0,
      onRestart: () => expect.fail('is not used'),
      depths: async () => ({ 'router.turn': 0, 'router.call': appended.length, tool: 0, delivery: 0 }),
    },
    notices: { publish: () => {}, subscribe: () => subscription },
    tokens: { publish: () => {}, subscribe: () => subscription, replay: async () => [] },
    blobs: {
      put: async (bytes) => {
        blobs.set(`b${blobs.size}`, bytes);
        return `b${blobs.size - 1}`;
      },
      get: async (id) => {
        if (held.blobsFail) throw new Error('the store is away');
        return blobs.get(id) ?? null;
      },
    },
    usage: { append: async () => {}, consume: () => subscription, backlog: async () => ({ records: 0, oldestAtMs: null }) },
    isReady: () => true,
    connectionNumber: () => 1,
    flush: () => {},
    hasCapacity: () => false,
    onReconnect: () => subscription,
    close: async () => {},
  };
  return { bus, blobs, appended, held };
}

function stored(bodies: string[]): StoredCommand[] {
  return bodies.map((body, index) => ({ sequence: index + 1, messageId: `m${index}`, body, storedAtMs: index }));
}

/** Records how it was settled. */
function itemOf(body: string): { item: WorkItem; settled: string[] } {
  const settled: string[] = [];
  const settle = (how: string) => async () => {
    settled.push(how);
  };
  return {
    settled,
    item: {
      messageId: 'w1',
      body,
      deliveryCount: 1,
      publishedAtMs: 1,
      ack: settle('ack'),
      nak: settle('nak'),
      term: settle('term'),
      working: settle('working'),
    },
  };
}

describe('carryLargeBodies', () => {
  it('sends small bodies unchanged, and escapes only those that look like a mark', async () => {
    const { bus, appended, blobs } = innerBus();
    const carrying = withLargeBodies(bus);
    for (const body of ['{"a":1}', '', 'blob:x', 'text:x', 'blob', 'x'.repeat(512 * 1024)]) await carrying.commands.append(1, 'm', body);

    expect(appended).toEqual(['{"a":1}', '', 'text:blob:x', 'text:text:x', 'blob', 'x'.repeat(512 * 1024)]);
    expect(blobs.size).toBe(0);
  });

  it('DESIGN 3: a body over 512 KiB travels as a reference, and bytes are counted, not characters', async () => {
    const { bus, appended, blobs } = innerBus();
    await withLargeBodies(bus).work.publish('router.call', 'w1', '\u20ac'.repeat(180 * 1024));

    expect(appended).toEqual(['blob:b0']);
    expect(blobs.get('b0')?.byteLength).toBe(3 * 180 * 1024);
  });

  it('dispatches a body as it is, up to what the broker takes, in bytes, and refuses a larger one', () => {
    const { bus, appended, blobs } = innerBus();
    const { work } = withLargeBodies(bus);
    const largest = '\u20ac'.repeat(MEBIBYTE / 3);
    work.dispatch('router.call', 'w1', Buffer.from(largest));

    expect(appended).toEqual([largest]);
    expect(() => work.dispatch('router.call', 'w2', Buffer.from(`${largest}\u20ac`))).toThrow(expect.objectContaining({ code: 'bus.body_too_large' }));
    expect(appended).toHaveLength(1);
    expect(blobs.size).toBe(0);
  });

  it('appends small bodies in the same tick, so that their order is retained', () => {
    const { bus, appended } = innerBus();
    const carrying = withLargeBodies(bus);
    void carrying.commands.append(1, 'm1', 'a');
    void carrying.commands.append(1, 'm2', 'b');

    expect(appended).toEqual(['a', 'b']);
  });

  it('splits a batch of very large bodies, and never redelivers what the handler had accepted before it failed', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    const large = 'x'.repeat(20 * MEBIBYTE);
    for (const body of [large, 'small', large]) await carrying.commands.append(1, 'm', body);
    const read: number[][] = [];
    let calls = 0;
    carrying.commands.read(1, START, async (commands) => {
      calls += 1;
      if (calls === 2) throw new Error('the commit failed');
      read.push(commands.map(({ sequence }) => sequence));
    });

    await expect(held.read?.(stored(appended))).rejects.toThrow('the commit failed');
    await held.read?.(stored(appended));
    expect(read).toEqual([[1, 2], [3]]);
    expect(calls).toBe(3);
  });

  it('delivers the commands of a new log, though their sequences are lower, and forwards the restart', async () => {
    const { bus, held } = innerBus();
    const read: string[] = [];
    const note = async (commands: StoredCommand[]) => {
      for (const { sequence, body } of commands) read.push(`${sequence} ${body}`);
    };
    withLargeBodies(bus).commands.read(1, { sequence: 7, fingerprint: 'm7' }, note, { onRestart: () => read.push('restart') });
    held.restart?.();
    await held.read?.(stored(['text:blob:a', 'b']));

    expect(read).toEqual(['restart', '1 blob:a', '2 b']);
  });

  it('rejects a batch when a blob cannot be read for now', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.commands.append(1, 'm', 'x'.repeat(MEBIBYTE));
    const lengths: number[] = [];
    carrying.commands.read(1, START, async (commands) => {
      for (const { body } of commands) lengths.push(body.length);
    });
    held.blobsFail = true;
    await expect(held.read?.(stored(appended))).rejects.toThrow('the store is away');
    held.blobsFail = false;
    await held.read?.(stored(appended));

    expect(lengths).toEqual([MEBIBYTE]);
  });

  it('delivers work with a large body under the attempt of its item', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    const attempts: unknown[] = [];
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 1_000 }, async ({ attempt, body }) => void attempts.push([attempt, body.length]));
    const { item } = itemOf(appended[0] ?? '');
    await held.consume?.({ ...item, attempt: 1_417 });

    expect(attempts).toEqual([[1_417, MEBIBYTE]]);
  });

  it('naks work when its blob cannot be read for now, and drops it when the blob is gone', async () => {
    const { bus, appended, held, blobs } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    const handled: string[] = [];
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 1_000 }, async ({ body }) => {
      handled.push(body);
    });

    held.blobsFail = true;
    const later = itemOf(appended[0] ?? '');
    await expect(held.consume?.(later.item)).rejects.toThrow('the store is away');
    held.blobsFail = false;
    blobs.clear();
    const gone = itemOf(appended[0] ?? '');
    await held.consume?.(gone.item);

    expect(later.settled).toEqual(['nak']);
    expect(gone.settled).toEqual(['term']);
    expect(handled).toEqual([]);
  });

  it('DESIGN 6 rule 4: extends the lease of an item while its blob is fetched, and begins it with two thirds of one or more', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    let arrive = () => {};
    const { get } = bus.blobs;
    bus.blobs.get = async (id) => {
      await new Promise<void>((resolve) => {
        arrive = resolve;
      });
      return get(id);
    };
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 15 }, (item) => item.ack());
    const { item, settled } = itemOf(appended[0] ?? '');
    const handled = held.consume?.(item);
    await expect.poll(() => settled.length, { timeout: 60_000 }).toBeGreaterThan(1);
    arrive();
    await handled;
    expect(new Set(settled.slice(0, -1))).toEqual(new Set(['working']));
    expect(settled.at(-1)).toBe('ack');
  });

  it('begins an item that was extended under a third of its lease before at once: its consumer may have no leader that extends it', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, (item) => item.ack());
    const { item, settled } = itemOf(appended[0] ?? '');
    await held.consume?.(item);
    expect(settled).toEqual(['ack']);
  });

  it('DESIGN 6 rule 4: does not begin an item whose lease was lost while its blob was fetched', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    const arrived = gate();
    const { get } = bus.blobs;
    bus.blobs.get = (id) => arrived.opened.then(() => get(id));
    const handled: string[] = [];
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 15 }, async ({ body }) => void handled.push(body));
    const { item } = itemOf(appended[0] ?? '');
    let extensions = 0;
    item.working = () => {
      extensions += 1;
      return Promise.reject(new SwitchyardError('bus.lease_lost', 'lost'));
    };
    const refused = expect(held.consume?.(item)).rejects.toMatchObject({ code: 'bus.lease_lost' });
    await expect.poll(() => extensions, { timeout: 60_000 }).toBeGreaterThan(0);
    arrived.open();
    await refused;
    expect(handled).toEqual([]);
  });

  it('forwards how the handler of a large item settles it', async () => {
    const { bus, appended, held } = innerBus();
    const carrying = withLargeBodies(bus);
    await carrying.work.publish('router.call', 'w1', 'x'.repeat(MEBIBYTE));
    carrying.work.consume('router.call', { concurrency: 1, ackWaitMs: 1_000 }, async (item) => {
      await item.working();
      await item.nak(5);
      await item.term('why');
      await item.ack();
    });
    const { item, settled } = itemOf(appended[0] ?? '');
    await held.consume?.(item);

    expect(settled).toEqual(['working', 'nak', 'term', 'ack']);
  });
});
