import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, createInbox, headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus, Subscription, UsageMessage } from '../../bus.ts';
import { Collector, eventually, gate } from '../../conformance/under-test.ts';
import { openNatsBus } from '../nats-bus.ts';
import type { NatsSettings } from '../settings.ts';
import { deleteStreams } from '../test-support/delete-streams.ts';
import { packed } from './packed-records.ts';

let server: NatsServer;
let broker: NatsConnection;
let manager: JetStreamManager;
const opened: Bus[] = [];

beforeAll(async () => {
  server = await startNatsServer();
  broker = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  manager = await jetstreamManager(broker);
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

async function openBus(settings: Partial<NatsSettings> = {}): Promise<Bus> {
  const bus = await openNatsBus({ servers: server.url, user: null, password: null, log: silentLog, settings });
  opened.push(bus);
  return bus;
}

async function isReady(bus: Bus, expected: boolean): Promise<void> {
  await eventually(
    async () => bus.isReady(),
    (found) => found === expected,
  );
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

function consumeAll(bus: Bus): Collector<UsageMessage> & { consuming: Subscription } {
  const collected = new Collector<UsageMessage>();
  const consuming = bus.usage.consume(async (records) => records.forEach(collected.add), { maxBatch: 100 });
  return Object.assign(collected, { consuming });
}

/** Pulls what is appended and extends its ack wait, so that the broker delivers it to no other consumer. */
async function deliveredAndKept(append: () => Promise<void>): Promise<{ end: () => void }> {
  const inbox = createInbox();
  const pulled = new Collector<Msg>();
  broker.subscribe(inbox, { max: 1, callback: (_, message) => pulled.add(message) });
  broker.publish('$JS.API.CONSUMER.MSG.NEXT.USAGE.usage', JSON.stringify({ batch: 1, expires: 60_000_000_000 }), { reply: inbox });
  await append();
  const [message] = await pulled.atLeast(1);
  const extending = setInterval(() => message?.respond('+WPI'), 100);
  return { end: () => clearInterval(extending) };
}

/** The second record of the log: delivered to a reader that extends its lease. */
async function withHeldRecord(bus: Bus, { messageId, body }: UsageMessage): Promise<{ end: () => void }> {
  const first = consumeAll(bus);
  await bus.usage.append('gen-1', '{}');
  await first.atLeast(1);
  await isEmptied(bus);
  await first.consuming.stop();
  return deliveredAndKept(async () => bus.usage.append(messageId, body));
}

async function hasAll(collected: Collector<UsageMessage>, ids: readonly string[]): Promise<void> {
  await eventually(
    async () => new Set(collected.items.map(({ messageId }) => messageId)),
    (found) => ids.every((id) => found.has(id)),
  );
}

async function isEmptied(bus: Bus): Promise<void> {
  await eventually(
    () => bus.usage.backlog(),
    ({ records }) => records === 0,
  );
}

function headersWith(values: Readonly<Record<string, string>>): MsgHdrs {
  const made = headers();
  for (const [name, value] of Object.entries(values)) made.set(name, value);
  return made;
}

describe('the usage log', () => {
  it('DESIGN 6: has every record that was acknowledged, though the broker is killed under load, and delivers it to a consumer of before', async () => {
    const [sender, ledger] = [await openBus(), await openBus({ usageAckWaitMs: 2_000 })];
    const collected = consumeAll(ledger);
    const acknowledged = new Set<string>();
    let isOver = false;
    const senders = Array.from({ length: 8 }, async (_, lane) => {
      for (let index = 0; !isOver; index += 1) {
        await sender.usage.append(`${lane}-${index}`, '{}');
        acknowledged.add(`${lane}-${index}`);
      }
    });
    for (let kill = 1; kill <= 3; kill += 1) {
      const before = acknowledged.size;
      await server.kill();
      await server.start();
      await brokerIsBack();
      await eventually(
        async () => acknowledged.size,
        (count) => count > before + 500,
      );
    }
    isOver = true;
    await Promise.all(senders);

    await hasAll(collected, [...acknowledged]);
    await isEmptied(ledger);
  });

  it('keeps a record in memory while the broker is away, past the time of one try, and stores it when it is back', async () => {
    const bus = await openBus({ storeBudgetMs: 200 });
    await server.kill();
    await isReady(bus, false);
    let isStored = false;
    const appended = bus.usage.append('gen-1', 'kept').then(() => {
      isStored = true;
    });
    // Other stores give up meanwhile.
    await expect(bus.commands.append(1, 'm1', 'a')).rejects.toMatchObject({ code: 'service.unreachable' });
    await expect(bus.commands.append(1, 'm2', 'a')).rejects.toMatchObject({ code: 'service.unreachable' });
    expect(isStored).toBe(false);
    await server.start();
    await appended;

    expect(await consumeAll(bus).atLeast(1)).toEqual([{ messageId: 'gen-1', body: 'kept' }]);
  });

  it('refuses a waiting record when the bus closes while the broker is away', async () => {
    const bus = await openBus({ storeBudgetMs: 200 });
    await server.kill();
    await isReady(bus, false);
    const appended = expect(bus.usage.append('gen-1', 'kept')).rejects.toMatchObject({ code: 'bus.closed' });
    await bus.close();
    await appended;
    await server.start();
  });

  it('is consumed again when the broker has lost its consumer', async () => {
    const bus = await openBus();
    const collected = consumeAll(bus);
    await bus.usage.append('gen-1', '{}');
    await collected.atLeast(1);
    await isEmptied(bus);
    const createdAt = async () => (await manager.consumers.info('USAGE', 'usage').catch(() => null))?.created ?? null;
    const before = await createdAt();
    // nats-server 2.9 sometimes reports an error of its own files after deleting it.
    await manager.consumers.delete('USAGE', 'usage').catch(() => {});
    await eventually(createdAt, (created) => created !== null && created !== before);
    await bus.usage.append('gen-2', '{}');

    await hasAll(collected, ['gen-2']);
  });

  it('handles what it has received, though the broker is lost meanwhile', async () => {
    const bus = await openBus();
    for (const message of ['a', 'b']) await Promise.all([1, 2, 3].map((index) => bus.usage.append(`gen-${message}${index}`, '{}')));
    const [begun, go] = [gate(), gate()];
    const handled = new Collector<string>();
    bus.usage.consume(
      async (records) => {
        begun.open();
        await go.opened;
        for (const { messageId } of records) handled.add(messageId);
      },
      // Less than both messages have, so that the second one waits for the handler.
      { maxBatch: 4 },
    );
    await begun.opened;
    await server.kill();
    await isReady(bus, false);
    go.open();
    const ids = await handled.atLeast(6);
    await server.start();

    expect(ids).toEqual(['gen-a1', 'gen-a2', 'gen-a3', 'gen-b1', 'gen-b2', 'gen-b3']);
  });

  it('DESIGN 6: a record that the broker does not deliver again is read from the log', async () => {
    const bus = await openBus({ usageAckWaitMs: 500 });
    const held = await withHeldRecord(bus, { messageId: 'gen-2', body: 'held' });
    await bus.usage.append('gen-3', 'next');
    const collected = consumeAll(bus);
    await isEmptied(bus);
    held.end();

    expect(collected.items).toContainEqual({ messageId: 'gen-2', body: 'held' });
  });

  it('leaves a record that the broker does not deliver again in the log until the handler accepts it', async () => {
    const bus = await openBus({ usageAckWaitMs: 300 });
    const held = await withHeldRecord(bus, { messageId: 'gen-2', body: 'held' });
    const [rejected, accepted] = [new Collector<UsageMessage>(), new Collector<UsageMessage>()];
    let accepts = false;
    bus.usage.consume(
      async (records) => {
        records.forEach((accepts ? accepted : rejected).add);
        if (!accepts) throw new Error('the database is away');
      },
      { maxBatch: 100 },
    );
    await rejected.atLeast(2);
    expect((await bus.usage.backlog()).records).toBe(1);
    accepts = true;
    await isEmptied(bus);
    held.end();

    expect(accepted.items).toEqual([{ messageId: 'gen-2', body: 'held' }]);
  });

  it('is declared again when its stream was deleted, and what was in flight acks no record of the new one', async () => {
    const [bus, other] = [await openBus(), await openBus()];
    const [begun, go, isHeld, reject] = [gate(), gate(), gate(), gate()];
    const consuming = bus.usage.consume(
      async () => {
        begun.open();
        await go.opened;
      },
      { maxBatch: 1 },
    );
    await bus.usage.append('old', '{}');
    await begun.opened;
    await manager.streams.delete('USAGE');
    await bus.usage.append('new', '{}');
    const accepted = new Collector<string>();
    let batches = 0;
    other.usage.consume(
      async (records) => {
        batches += 1;
        if (batches > 1) {
          for (const { messageId } of records) accepted.add(messageId);
          return;
        }
        isHeld.open();
        await reject.opened;
        throw new Error('the database is away');
      },
      { maxBatch: 1 },
    );
    await isHeld.opened;
    // Both are the first of their streams.
    go.open();
    await consuming.stop();
    reject.open();

    expect(await accepted.atLeast(1)).toEqual(['new']);
    await isEmptied(other);
  });

  it('asks the broker for no more than it may hold while its handler is busy', async () => {
    const bus = await openBus();
    const [begun, go] = [gate(), gate()];
    bus.usage.consume(
      async () => {
        begun.open();
        await go.opened;
      },
      { maxBatch: 50 },
    );
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => bus.usage.append(`gen-${index}`, '{}')));
    await begun.opened;
    const { num_ack_pending: delivered } = await manager.consumers.info('USAGE', 'usage');
    go.open();

    expect(delivered).toBeLessThanOrEqual(100);
    await isEmptied(bus);
  });

  it('has the records of one tick in one message, and delivers each of them, as those of releases that sent each by itself', async () => {
    const bus = await openBus();
    const ids = Array.from({ length: 30 }, (_, index) => `gen-${index}`);
    await Promise.all(ids.map((id) => bus.usage.append(id, `body of ${id}`)));
    expect((await manager.streams.info('USAGE')).state.messages).toBe(1);
    // As an earlier release has sent it, and one of an unknown form.
    broker.publish('usage.record', 'alone', { headers: headersWith({ 'Nats-Msg-Id': 'gen-alone' }) });
    broker.publish('usage.record', 'unreadable', { headers: headersWith({ 'Nats-Msg-Id': 'records-odd' }) });
    // As the operator replays a message that an earlier worker has set aside.
    await bus.usage.append('records-1-replay-1', packed([{ messageId: 'gen-again', body: 'again' }]));
    const found = await consumeAll(bus).atLeast(33);

    expect(found.slice(0, 30)).toEqual(ids.map((messageId) => ({ messageId, body: `body of ${messageId}` })));
    // Of two connections.
    const others = found.slice(30).sort((one, other) => one.messageId.localeCompare(other.messageId));
    expect(others).toEqual([
      { messageId: 'gen-again', body: 'again' },
      { messageId: 'gen-alone', body: 'alone' },
      { messageId: 'records-odd', body: 'unreadable' },
    ]);
    await isEmptied(bus);
  });

  it('gives a handler no more than a batch of a message at once, and all of the message again when a part of it was rejected', async () => {
    const bus = await openBus();
    const ids = Array.from({ length: 10 }, (_, index) => `gen-${index}`);
    await Promise.all(ids.map((id) => bus.usage.append(id, '{}')));
    const batches: string[][] = [];
    bus.usage.consume(
      async (records) => {
        batches.push(records.map(({ messageId }) => messageId));
        if (batches.length === 2) throw new Error('the database is away');
      },
      { maxBatch: 4 },
    );
    await isEmptied(bus);

    const [first, second, third] = [ids.slice(0, 4), ids.slice(4, 8), ids.slice(8)];
    expect(batches).toEqual([first, second, first, second, third]);
  });

  it('delivers a steady flow of records without a stop', async () => {
    const bus = await openBus();
    const collected = consumeAll(bus);
    let appended = 0;
    const untilMs = performance.now() + 4_000;
    const lanes = Array.from({ length: 32 }, async (_, lane) => {
      for (let index = 0; performance.now() < untilMs; index += 1) {
        await bus.usage.append(`gen-${lane}-${index}`, '{}');
        appended += 1;
      }
    });
    await Promise.all(lanes);
    await isEmptied(bus);

    expect(new Set(collected.items.map(({ messageId }) => messageId)).size).toBe(appended);
  });
});
