import { AsyncLocalStorage } from 'node:async_hooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { Bus, StoredCommand, WorkItem } from '../bus.ts';
import type { BusUnderTest } from '../conformance/under-test.ts';
import { Collector, gate, START } from '../conformance/under-test.ts';
import { busConformance } from '../conformance.ts';
import { LOST_BODY } from '../large-bodies.ts';
import { openMemoryBus } from './memory-bus.ts';

const TABLES = ['bus_meta', 'bus_log', 'bus_work', 'bus_blobs', 'bus_usage'];

// Creating a database takes seconds: all cases share one, whose tables they drop first.
let database: Database;

beforeAll(async () => {
  database = await openTestDatabase();
});

afterAll(() => database.close());

function movableClock(): { nowMs(): number; advance(ms: number): void } {
  let nowMs = Date.parse('2026-01-01T00:00:00Z');
  return {
    nowMs: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

async function emptyStore(): Promise<void> {
  for (const table of TABLES) await database.query(`drop table if exists ${table}`);
}

const SMALL_BYTES = 1024 * 1024;

busConformance('memory', async (kind): Promise<BusUnderTest> => {
  await emptyStore();
  const clock = movableClock();
  const opened: Bus[] = [];
  const open = async () => {
    const bus = await openMemoryBus({
      database,
      clock,
      ...(kind === 'small' ? { limits: { logBytes: SMALL_BYTES, workBytes: SMALL_BYTES, usageBytes: SMALL_BYTES } } : {}),
    });
    opened.push(bus);
    return bus;
  };
  const bus = await open();
  return {
    bus,
    another: async () => bus,
    windows: { dedupeMs: 120_000, replayMs: 120_000, blobMs: 24 * 3_600_000 },
    capacityBytes: SMALL_BYTES,
    pass: async (ms) => clock.advance(ms),
    reopen: open,
    close: async () => {
      for (const bus of opened) await bus.close();
    },
  };
});

describe('memory bus: on its own', () => {
  const opened: Bus[] = [];
  const clock = movableClock();
  const complaints: string[] = [];
  const log = {
    ...silentLog,
    warn: (_: Record<string, unknown>, message: string) => complaints.push(message),
    error: (_: Record<string, unknown>, message: string) => complaints.push(message),
  };

  async function open(over: Database = database): Promise<Bus> {
    const bus = await openMemoryBus({ database: over, clock, log });
    opened.push(bus);
    return bus;
  }

  beforeEach(async () => {
    for (const bus of opened.splice(0)) await bus.close();
    complaints.length = 0;
    await emptyStore();
  });

  /** The database, with failing statements of one kind while `fails` is true. */
  function failing(pattern: RegExp, fails: () => boolean): Database {
    const isMeant = (statement: string | { text: string }) => pattern.test(typeof statement === 'string' ? statement : statement.text);
    return {
      query: (statement, parameters) => (isMeant(statement) && fails() ? Promise.reject(new Error('the disk is full')) : database.query(statement, parameters)),
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
  }

  it('begins no delivery whose lease has expired before its body was read', async () => {
    const before = await open();
    await before.work.publish('tool', 'w1', 'a');
    await before.close();
    let reads = 0;
    const bothRead = gate();
    const slow: Database = {
      query: async (statement, parameters) => {
        if (typeof statement !== 'string' && statement.name === 'bus_work_body') {
          reads += 1;
          if (reads === 2) bothRead.open();
          await bothRead.opened;
        }
        return database.query(statement, parameters);
      },
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
    const begun = new Collector<number>();
    (await open(slow)).work.consume('tool', { concurrency: 2, ackWaitMs: 100 }, async (item) => {
      begun.add(item.deliveryCount);
      await item.ack();
    });
    await begun.atLeast(1);

    expect(reads).toBeGreaterThanOrEqual(2);
    expect(begun.items).not.toContain(2);
    expect(complaints).toContain('a work item was read after its lease, and is left to its next delivery');
  });

  it('does not warn of a delivery whose item was acknowledged by an earlier one before its body was read', async () => {
    const before = await open();
    await before.work.publish('tool', 'w1', 'a');
    await before.close();
    let reads = 0;
    const [read, acknowledged] = [gate(), gate()];
    const slow: Database = {
      query: async (statement, parameters) => {
        if (typeof statement !== 'string' && statement.name === 'bus_work_body') {
          reads += 1;
          if (reads === 2) {
            read.open();
            await acknowledged.opened;
          }
        }
        return database.query(statement, parameters);
      },
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
    const bus = await open(slow);
    const consumer = bus.work.consume('tool', { concurrency: 2, ackWaitMs: 100 }, async (item) => {
      await read.opened;
      await item.ack();
      acknowledged.open();
    });
    await acknowledged.opened;
    await consumer.stop();

    expect(complaints).not.toContain('a work item was read after its lease, and is left to its next delivery');
  });

  it('redelivers what was in flight at a killed process at once, marked, and loses nothing that it had stored', async () => {
    const vanished = await open();
    const begun = new Collector<WorkItem>();
    const never = gate();
    vanished.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      begun.add(item);
      await never.opened;
    });
    for (const body of ['in hand', 'waiting']) await vanished.work.publish('router.call', body, body);
    await vanished.commands.append(1, 'm1', 'a');
    await begun.atLeast(1);

    // Not closed: the lease of ten minutes has not expired when the next process opens the store.
    const next = await open();
    const again = new Collector<WorkItem>();
    next.work.consume('router.call', { concurrency: 2, ackWaitMs: 600_000 }, async (item) => {
      await item.ack();
      again.add(item);
    });
    const commands = new Collector<StoredCommand>();
    next.commands.read(1, START, async (batch) => batch.forEach(commands.add));

    expect((await again.atLeast(2)).map(({ body, deliveryCount: delivery }) => `${body} ${delivery}`)).toEqual(['in hand 2', 'waiting 2']);
    expect((await commands.atLeast(1)).map(({ body }) => body)).toEqual(['a']);
    never.open();
  });

  it('DESIGN 6: knows no dispatch of an earlier process, and none is stored', async () => {
    const clock = movableClock();
    const killed = await openMemoryBus({ database, clock });
    const begun = new Collector<string>();
    killed.work.consume('router.turn', { concurrency: 1, ackWaitMs: 60_000 }, async ({ messageId }) => {
      begun.add(messageId);
      await new Promise(() => {});
    });
    killed.work.dispatch('router.turn', 'trn_1-1', Buffer.from('body'));
    await begun.atLeast(1);
    clock.advance(1_000);
    const bus = await openMemoryBus({ database, clock });
    expect(bus.work.earliestDispatchAtMs - killed.work.earliestDispatchAtMs).toBe(1_000);
    expect(await bus.work.publish('router.turn', 'trn_1-1', 'body', 1)).toEqual({ duplicate: false });
    await bus.close();
  });

  it('counts deliveries over restarts of the process', async () => {
    const first = await open();
    const sentBack = new Collector<number>();
    first.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      await item.nak(600_000);
      sentBack.add(item.deliveryCount);
    });
    await first.work.publish('router.call', 'w1', 'a');
    await sentBack.atLeast(1);
    await first.close();
    await (await open()).close();
    const third = await open();
    const collected = new Collector<number>();
    third.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => collected.add(item.deliveryCount));

    expect(await collected.atLeast(1)).toEqual([4]);
  });

  it('fails an append whose statement fails, with its repeats, and stores it when it is tried again', async () => {
    let fails = true;
    const bus = await open(failing(/insert into bus_log /, () => fails));
    const answers = await Promise.allSettled([bus.commands.append(1, 'm1', 'a'), bus.commands.append(1, 'm1', 'a')]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fails = false;
    const collected = new Collector<StoredCommand>();
    bus.commands.read(1, START, async (batch) => batch.forEach(collected.add));
    const { duplicate } = await bus.commands.append(1, 'm1', 'a');

    expect(duplicate).toBe(false);
    expect((await collected.atLeast(1)).map(({ body }) => body)).toEqual(['a']);
  });

  it('retries when a page of commands could not be read', async () => {
    let failures = 0;
    const bus = await open(failing(/from bus_log where p/, () => failures < 2 && ++failures > 0));
    await bus.commands.append(1, 'm1', 'a');
    const collected = new Collector<StoredCommand>();
    bus.commands.read(1, START, async (batch) => batch.forEach(collected.add));

    expect((await collected.atLeast(1)).map(({ body }) => body)).toEqual(['a']);
    expect(complaints).toContain('a page of commands could not be read');
  });

  it('redelivers an item when its removal fails', async () => {
    let fails = false;
    const bus = await open(failing(/delete from bus_work/, () => fails));
    const collected = new Collector<WorkItem>();
    bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      collected.add(item);
      fails = item.deliveryCount === 1;
      await item.ack();
    });
    await bus.work.publish('router.call', 'w1', 'a');

    expect((await collected.atLeast(2)).map(({ deliveryCount: delivery }) => delivery)).toEqual([1, 2]);
  });

  it('stores nothing of an item that is nakked and acked in the same statement', async () => {
    const statement = gate();
    const bus = await open({
      query: async (text, parameters) => {
        const hasLease = JSON.stringify(parameters ?? []).includes('held');
        if (hasLease) await statement.opened;
        return database.query(text, parameters);
      },
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    });
    const acked = new Collector<Promise<void>>();
    let held: Promise<unknown> = Promise.resolve();
    bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      if (item.deliveryCount === 1) {
        held = bus.work.publish('router.turn', 'held', 'held');
        await Promise.resolve();
        void item.nak(0);
      } else acked.add(item.ack());
    });
    await bus.work.publish('router.call', 'w1', 'a');
    const [ack] = await acked.atLeast(1);
    statement.open();
    await Promise.all([ack, held]);

    expect((await database.query('select message_id from bus_work')).rows).toEqual([{ message_id: 'held' }]);
  });

  it('delivers a lost large command as lost, and the partition goes on', async () => {
    const bus = await open();
    const large = 'x'.repeat(600 * 1024);
    await bus.commands.append(1, 'large', large);
    await bus.commands.append(1, 'small', 'small');
    await database.query('delete from bus_blobs');
    const collected = new Collector<StoredCommand>();
    bus.commands.read(1, START, async (batch) => batch.forEach(collected.add));

    expect((await collected.atLeast(2)).map(({ messageId, body }) => [messageId, body])).toEqual([
      ['large', LOST_BODY],
      ['small', 'small'],
    ]);
  });

  it('drops work whose large body is lost, and logs it', async () => {
    const bus = await open();
    await bus.work.publish('router.call', 'large', 'x'.repeat(600 * 1024));
    await bus.work.publish('router.call', 'small', 'small');
    await database.query('delete from bus_blobs');
    const collected = new Collector<string>();
    bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      await item.ack();
      collected.add(item.body);
    });

    expect(await collected.atLeast(1)).toEqual(['small']);
    expect(complaints).toEqual(['a work item was dropped by its handler']);
    expect((await database.query('select id from bus_work')).rows).toEqual([]);
  });

  it('drops work that is older than a day', async () => {
    const bus = await open();
    await bus.work.publish('router.call', 'old', 'old');
    clock.advance(25 * 3_600_000);
    await bus.work.publish('router.call', 'new', 'new');
    const collected = new Collector<string>();
    bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async (item) => {
      await item.ack();
      collected.add(item.body);
    });

    expect(await collected.atLeast(1)).toEqual(['new']);
    expect(complaints).toEqual(['a work item was dropped because of its age']);
  });

  it('retains tokens up to its limit, and drops the oldest of all calls first', async () => {
    const bus = await open();
    const mebibyte = Buffer.alloc(1024 * 1024);
    bus.tokens.publish('tok.a.first', mebibyte);
    for (let index = 0; index < 62; index += 1) bus.tokens.publish('tok.a.second', mebibyte);
    expect(await bus.tokens.replay('tok.a.first')).toHaveLength(1);
    bus.tokens.publish('tok.a.third', mebibyte);
    bus.tokens.publish('tok.a.third', mebibyte);

    expect(await bus.tokens.replay('tok.a.first')).toHaveLength(0);
    expect(await bus.tokens.replay('tok.a.third')).toHaveLength(2);
    expect((await bus.tokens.replay('tok.a.third'))[0]?.byteLength).toBe(mebibyte.byteLength);
  });

  it('deletes expired blobs when the next one is stored', async () => {
    const bus = await open();
    await bus.blobs.put(Buffer.alloc(3 * 1024 * 1024));
    clock.advance(25 * 3_600_000);
    const id = await bus.blobs.put(Buffer.from('a'));

    expect((await database.query('select id from bus_blobs')).rows).toEqual([{ id }]);
  });

  it("runs handlers in their own context, never in a publisher's", async () => {
    const bus = await open();
    const context = new AsyncLocalStorage<string>();
    const collected = new Collector<string>();
    const note = (what: string) => collected.add(`${what} in ${context.getStore() ?? 'none'}`);
    context.run('the subscriber', () => {
      bus.commands.read(1, START, async () => note('command'));
      bus.work.consume('router.call', { concurrency: 1, ackWaitMs: 600_000 }, async () => note('work'));
    });
    bus.notices.subscribe('evt.*', () => note('notice'));
    await context.run('the publisher', async () => {
      bus.notices.publish('evt.s1', 'a');
      await bus.commands.append(1, 'm1', 'a');
      await bus.work.publish('router.call', 'w1', 'a');
    });

    expect([...(await collected.atLeast(3))].sort()).toEqual(['command in the subscriber', 'notice in none', 'work in the subscriber']);
  });

  it('refuses tables that a newer version has created', async () => {
    await (await open()).close();
    await database.query(`update bus_meta set value = '99' where key = 'layout'`);

    await expect(open()).rejects.toMatchObject({ code: 'storage.schema_refused' });
  });
});
