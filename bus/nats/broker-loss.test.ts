import { cpSync, rmSync } from 'node:fs';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Log, silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/servers/test-services.mjs';
import type { Bus, LogPosition, StoredCommand, WorkItem } from '../bus.ts';
import { Collector, eventually, gate, START } from '../conformance/under-test.ts';
import { openNatsBus } from './nats-bus.ts';
import type { NatsSettings } from './settings.ts';
import { deleteStreams } from './test-support/delete-streams.ts';

let server: NatsServer;
let broker: NatsConnection;
let manager: JetStreamManager;
const opened: Bus[] = [];

beforeAll(async () => {
  server = await startNatsServer();
  await connectOwn();
});

beforeEach(async () => {
  await brokerIsBack();
  await deleteStreams(manager);
});

afterEach(async () => {
  for (const bus of opened.splice(0)) await bus.close();
});

afterAll(async () => {
  await broker?.close();
  await server?.close();
});

async function connectOwn(): Promise<void> {
  broker = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  manager = await jetstreamManager(broker);
}

async function openBus(settings: Partial<NatsSettings> = {}, url = server.url, log: Log = silentLog): Promise<Bus> {
  const bus = await openNatsBus({ servers: url, user: null, password: null, log, settings });
  opened.push(bus);
  return bus;
}

async function isReady(bus: Bus, expected: boolean): Promise<void> {
  await eventually(
    async () => bus.isReady(),
    (found) => found === expected,
  );
}

async function restart(how: 'stop' | 'kill'): Promise<void> {
  await server[how]();
  await server.start();
  await brokerIsBack();
}

/** The test's own connection has to be up before requests. */
async function brokerIsBack(): Promise<void> {
  await eventually(
    () =>
      broker.flush().then(
        () => true,
        () => false,
      ),
    (isBack) => isBack,
  );
}

/** Reads a partition. Commands and restarts go into one list. */
function follow(bus: Bus, partition: number, position: LogPosition = START): Collector<string> {
  const delivered = new Collector<string>();
  const note = async (commands: StoredCommand[]) => {
    for (const { body } of commands) delivered.add(body);
  };
  bus.commands.read(partition, position, note, { onRestart: () => delivered.add('restart') });
  return delivered;
}

async function appendAll(bus: Bus, partition: number, bodies: string[]): Promise<number> {
  let last = 0;
  for (const body of bodies) last = (await bus.commands.append(partition, `id-${body}`, body)).sequence;
  return last;
}

describe('a broker that is killed under load', () => {
  const PARTITIONS = [3, 4, 63];

  it('loses nothing that it had acknowledged, and all clients recover by themselves', async () => {
    const [sender, receiver] = [await openBus(), await openBus()];
    const acknowledged = new Set<string>();
    const read = new Set<string>();
    const restarts: string[] = [];
    const worked = new Set<string>();
    let returns = 0;
    receiver.onReconnect(() => {
      returns += 1;
    });
    const consumedOf = PARTITIONS.map((partition) => {
      const taken: StoredCommand[] = [];
      const take = async (batch: StoredCommand[]) => {
        taken.push(...batch);
        for (const { messageId } of batch) read.add(messageId);
      };
      receiver.commands.read(partition, START, take, { onRestart: () => restarts.push(`partition ${partition}`) });
      return taken;
    });
    receiver.work.consume('tool', { concurrency: 16, ackWaitMs: 2_000 }, async (item) => {
      worked.add(item.messageId);
      await item.ack();
    });

    let isOver = false;
    const senders = Array.from({ length: 12 }, async (_, lane) => {
      for (let index = 0; !isOver; index += 1) {
        const id = `${lane}-${index}`;
        if (lane % 2 === 0) await sender.commands.append(PARTITIONS[lane % 3] ?? 0, id, 'x'.repeat(200));
        else await sender.work.publish('tool', id, 'x');
        acknowledged.add(id);
      }
    });
    for (let kill = 1; kill <= 3; kill += 1) {
      const before = acknowledged.size;
      await restart('kill');
      await eventually(
        async () => ({ returns, stored: acknowledged.size }),
        (now) => now.returns >= kill && now.stored > before + 1_000,
      );
    }
    isOver = true;
    await Promise.all(senders);

    await eventually(
      async () => [...acknowledged].filter((id) => !worked.has(id) && !read.has(id)).length,
      (missing) => missing === 0,
    );
    for (const taken of consumedOf) {
      const sequences = taken.map(({ sequence }) => sequence);
      expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
      expect(new Set(taken.map(({ messageId }) => messageId)).size).toBe(taken.length);
    }
    expect(restarts).toEqual([]);
  });

  it('DESIGN 3: a restarted broker retains frames again, though its memory is lost: each user of a stream declares it anew', async () => {
    const bus = await openBus();
    bus.tokens.publish('tok.gw1.call1', Buffer.from('before'));
    const retained = () => bus.tokens.replay('tok.gw1.call1').then((frames) => frames.map((frame) => Buffer.from(frame).toString()).join());
    await eventually(retained, (frames) => frames === 'before');
    const live = new Collector<string>();
    bus.tokens.subscribe('tok.gw1.*', (_, frame) => live.add(Buffer.from(frame).toString()));
    const returned = gate();
    bus.onReconnect(returned.open);
    await restart('kill');
    await returned.opened;
    bus.tokens.publish('tok.gw1.call1', Buffer.from('after'));

    expect(await eventually(retained, (frames) => frames !== '')).toBe('after');
    expect(await live.atLeast(1)).toEqual(['after']);
  });
});

describe('a broker that is away', () => {
  it('retains, once it is back, frames of the meantime that may be retained soon', async () => {
    const bus = await openBus();
    for (const subject of ['tok.gw1.call1', 'tok.gw1.call2', 'tok.gw1.call3', 'tok.gw1.call4']) {
      await server.kill();
      await isReady(bus, false);
      for (const text of ['ta', 'tb']) bus.tokens.publish(subject, Buffer.from(text));
      await server.start();
      await isReady(bus, true);

      expect((await bus.tokens.replay(subject, 'now')).map((frame) => Buffer.from(frame).toString())).toEqual(['ta', 'tb']);
    }
  });

  it('is not ready, stores pending appends when it is back in time, and fails those that it could not store in time', async () => {
    const bus = await openBus({ storeBudgetMs: 1_000 });
    const waitingBus = await openBus({ storeBudgetMs: 60_000 });
    await server.kill();
    await isReady(bus, false);
    const retained = waitingBus.commands.append(1, 'id-kept', 'kept');
    await expect(bus.commands.append(1, 'id-refused', 'refused')).rejects.toMatchObject({ code: 'service.unreachable' });
    bus.notices.publish('evt.s1', 'lost without a word');
    bus.tokens.publish('tok.a.b', Buffer.from('lost without a word'));
    await server.start();

    expect(await retained).toMatchObject({ duplicate: false });
    await isReady(bus, true);
    expect(await follow(bus, 1).atLeast(1)).toEqual(['kept']);
  });

  it('bounds what waits for its return', async () => {
    const bus = await openBus({ storeBudgetMs: 500 });
    await server.kill();
    await isReady(bus, false);
    const body = 'x'.repeat(500 * 1024);
    const outcomes = await Promise.allSettled(Array.from({ length: 140 }, (_, index) => bus.commands.append(1, `m${index}`, body)));
    const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'stored'));
    await server.start();

    expect(codes.filter((code) => code === 'service.unreachable')).toHaveLength(131);
    expect(codes.filter((code) => code === 'bus.full')).toHaveLength(9);
  });

  it('does not delay the closing of a bus', async () => {
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_fields: object, text: string) => void warnings.push(text) };
    const bus = await openBus({}, server.url, log);
    follow(bus, 1);
    bus.work.consume('tool', { concurrency: 4, ackWaitMs: 60_000 }, async () => {});
    await bus.commands.append(1, 'm1', 'a');
    // Its reconnect would wait for a timer that never fires.
    await broker.close();
    await server.kill();
    // Both connections of the bus: on one that does not know its loss yet, a request would end by its timer alone.
    await eventually(
      async () => warnings.filter((text) => text === 'the connection to NATS is lost').length,
      (lost) => lost === 2,
    );
    // No timer fires: a wait for one would never end.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(async () => {
      vi.useRealTimers();
      await server.start();
      await connectOwn();
    });
    await bus.close();
  });

  it('loses leases: a worker learns it when its lease is over', async () => {
    // Longer than the test, so that only the lease can end the wait.
    const bus = await openBus({ storeBudgetMs: 600_000 });
    const begun = new Collector<WorkItem>();
    const done = gate();
    bus.work.consume('tool', { concurrency: 1, ackWaitMs: 3_000 }, async (item) => {
      begun.add(item);
      await done.opened;
    });
    await bus.work.publish('tool', 'w1', 'a');
    const [item] = await begun.atLeast(1);
    await item?.working();
    await server.kill();
    await expect(item?.working()).rejects.toMatchObject({ code: 'bus.lease_lost' });
    await server.start();
    done.open();
  });

  it('accepts an ack when it is back, and the item is done', async () => {
    const bus = await openBus();
    const begun = new Collector<WorkItem>();
    const done = gate();
    bus.work.consume('tool', { concurrency: 1, ackWaitMs: 60_000 }, async (item) => {
      begun.add(item);
      if (item.body === 'a') {
        await done.opened;
        await item.ack();
      }
    });
    await bus.work.publish('tool', 'w1', 'a');
    await begun.atLeast(1);
    await server.stop();
    await isReady(bus, false);
    done.open();
    await server.start();
    await brokerIsBack();
    await bus.work.publish('tool', 'w2', 'b');
    await begun.atLeast(2);

    expect(begun.items.map(({ body, deliveryCount: delivery }) => `${body} ${delivery}`)).toEqual(['a 1', 'b 1']);
    await eventually(
      async () => (await manager.streams.info('WORK')).state.messages,
      (messages) => messages === 1,
    );
  });
});

describe('a log that is rolled back under an active reader', () => {
  /** Three commands, a copy of the store, two more commands that are delivered; then the copy is restored. */
  async function rolledBack(bus: Bus, { before }: { before: () => Promise<void> }): Promise<Collector<string>> {
    await appendAll(bus, 1, ['a', 'b', 'c']);
    const read = follow(bus, 1);
    await read.atLeast(3);
    await server.stop();
    const copy = `${server.folder}-copy`;
    rmSync(copy, { recursive: true, force: true });
    cpSync(server.folder, copy, { recursive: true });
    await server.start();
    await appendAll(bus, 1, ['d', 'e']);
    await read.atLeast(5);
    await server.stop();
    rmSync(server.folder, { recursive: true });
    cpSync(copy, server.folder, { recursive: true });
    await before();
    await server.start();
    return read;
  }

  it('is detected while it is shorter than what was read', async () => {
    const bus = await openBus();
    const read = await rolledBack(bus, { before: async () => {} });
    await read.atLeast(9);
    await appendAll(bus, 1, ['f']);

    expect(await read.atLeast(10)).toEqual(['a', 'b', 'c', 'd', 'e', 'restart', 'a', 'b', 'c', 'f']);
  });

  it('is detected when it has regrown past what was read, and nothing of the new log is skipped', async () => {
    const bus = await openBus();
    const read = await rolledBack(bus, {
      before: async () => {
        // On another port: the reader must not see the log grow.
        const elsewhere = await startNatsServer({ folder: server.folder });
        const other = await openBus({}, elsewhere.url);
        await appendAll(other, 1, ['p', 'q', 'r', 's']);
        await other.close();
        await elsewhere.stop();
        await elsewhere.close();
      },
    });

    expect(await read.atLeast(13)).toEqual(['a', 'b', 'c', 'd', 'e', 'restart', 'a', 'b', 'c', 'p', 'q', 'r', 's']);
  });

  it('is detected when the stream is deleted, without any loss of the connection', async () => {
    const bus = await openBus();
    await appendAll(bus, 1, ['a', 'b', 'c']);
    const { created } = await bus.commands.state();
    const read = follow(bus, 1);
    await read.atLeast(3);
    await manager.streams.delete('CMD');
    await appendAll(bus, 1, ['d']);

    expect(await read.atLeast(5)).toEqual(['a', 'b', 'c', 'restart', 'd']);
    expect((await bus.commands.state()).created).not.toBe(created);
  });

  it('is not declared again while the broker still removes the files of the deleted one: what the new one acknowledges can be read', async () => {
    const bus = await openBus();
    await appendAll(bus, 1, ['a']);
    const read = follow(bus, 1);
    await read.atLeast(1);
    // Each has its own files, so that the deletion goes on for a while after the broker has reported it.
    const consumers = Array.from({ length: 50 }, (_, index) => ({ durable_name: `kept-${index}`, filter_subject: 'cmd.2', ack_policy: 'explicit' as const }));
    for (const consumer of consumers) await manager.consumers.add('CMD', consumer);
    await manager.streams.delete('CMD');
    await appendAll(bus, 1, ['b']);

    expect(await read.atLeast(3)).toEqual(['a', 'restart', 'b']);
    expect((await bus.commands.at(1))?.body).toBe('b');
  });
});

describe('a reader', () => {
  it('goes on when its position was regularly purged and the broker restarts', async () => {
    const bus = await openBus();
    const read = follow(bus, 1);
    await appendAll(bus, 1, ['a']);
    await read.atLeast(1);
    // The owner has advanced its cursor to the end of the log, a command of another partition.
    const end = await appendAll(bus, 2, ['elsewhere']);
    await bus.commands.at(end);
    await bus.commands.purge(end);
    await restart('stop');
    await appendAll(bus, 1, ['b']);

    expect(await read.atLeast(2)).toEqual(['a', 'b']);
  });

  it('goes on when the broker has lost its consumer', async () => {
    const bus = await openBus();
    const read = follow(bus, 1);
    await appendAll(bus, 1, ['a']);
    await read.atLeast(1);
    for await (const { name } of manager.consumers.list('CMD')) await manager.consumers.delete('CMD', name);
    await appendAll(bus, 1, ['b']);

    expect(await read.atLeast(2)).toEqual(['a', 'b']);
  });

  it.each([
    { what: 'many', count: 4_000, sizeBytes: 1, leastLeft: 2_500 },
    { what: 'large', count: 40, sizeBytes: 400 * 1024, leastLeft: 25 },
  ])('fetches no more than it may hold while its handler is busy: $what commands', async ({ count, sizeBytes, leastLeft }) => {
    const bus = await openBus();
    const [begun, go] = [gate(), gate()];
    const delivered = new Collector<number>();
    bus.commands.read(1, START, async (commands) => {
      begun.open();
      await go.opened;
      for (const { sequence } of commands) delivered.add(sequence);
    });
    await Promise.all(Array.from({ length: count }, (_, index) => bus.commands.append(1, `m${index}`, 'x'.repeat(sizeBytes))));
    await begun.opened;
    const left: number[] = [];
    for await (const { num_pending: pending } of manager.consumers.list('CMD')) left.push(pending);
    expect(left).toHaveLength(1);
    expect(left[0]).toBeGreaterThan(leastLeft);
    go.open();

    expect(await delivered.atLeast(count)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });

  it('leaves no consumer behind when it stops', async () => {
    const bus = await openBus();
    const reader = bus.commands.read(1, START, async () => {});
    const count = async () => (await manager.streams.info('CMD')).state.consumer_count;
    await eventually(count, (consumers) => consumers === 1);
    await reader.stop();

    expect(await eventually(count, (consumers) => consumers === 0)).toBe(0);
  });

  it('leaves no consumer behind when it stops before the broker has confirmed one', async () => {
    const bus = await openBus();
    const before = (await manager.streams.info('CMD')).state.consumer_count;
    server.signal('SIGSTOP');
    const reader = bus.commands.read(1, START, async () => {});
    // Requests leave over several ticks.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const stopping = reader.stop();
    server.signal('SIGCONT');
    await stopping;
    // On the reader's connection: the broker replies after all that came before.
    await bus.commands.state();

    expect((await manager.streams.info('CMD')).state.consumer_count).toBe(before);
  });
});

describe('work', () => {
  it('is consumed again when the broker has lost the consumer of its kind', async () => {
    const bus = await openBus();
    const delivered = new Collector<string>();
    bus.work.consume('delivery', { concurrency: 2, ackWaitMs: 60_000 }, async (item) => {
      await item.ack();
      delivered.add(item.body);
    });
    await bus.work.publish('delivery', 'w1', 'a');
    await delivered.atLeast(1);
    const createdAt = async () => (await manager.consumers.info('WORK', 'delivery').catch(() => null))?.created ?? null;
    const before = await createdAt();
    // nats-server 2.9 sometimes reports an error of its own files after deleting it.
    await manager.consumers.delete('WORK', 'delivery').catch(() => {});
    await eventually(createdAt, (created) => created !== null && created !== before);
    await bus.work.publish('delivery', 'w2', 'b');

    expect(await delivered.atLeast(2)).toEqual(['a', 'b']);
  });
});
