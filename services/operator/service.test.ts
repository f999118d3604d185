import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { CommandTags } from '#bus/command-tags.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { deliveryWork } from '#bus/messages/delivery.ts';
import { sessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { StreamUpgrade } from '#bus/stream-upgrade.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { switchyardProgram } from './service.ts';

const SESSION = 'ses_1';
const PARTITION = partitionOf(SESSION);

let database: Database;
let bus: Bus;
let fault: (() => Promise<never>) | null;
let published: string[];
let upgrades: StreamUpgrade[] = [];
const tags = new CommandTags('the secret of a deployment under test');

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  fault = null;
  published = [];
  bus = await openMemoryBus({ database, clock: systemClock });
});
afterEach(async () => {
  await bus.close();
  await database.query('delete from dead_letters');
  await database.query('delete from deliveries');
});

async function run(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const program = switchyardProgram({
    openDatabase: async () => database,
    openBus: async () => ({
      commands: { ...bus.commands, append: (...given) => fault?.() ?? bus.commands.append(...given) },
      work: {
        consume: (kind, options, handler) => bus.work.consume(kind, options, handler),
        publish: async (kind, messageId, body) => {
          const { rows } = await database.query<{ state: string }>('select state from deliveries');
          published.push(rows[0]?.state ?? '');
          return fault?.() ?? bus.work.publish(kind, messageId, body);
        },
        dispatch: (...given) => bus.work.dispatch(...given),
        maxDispatchBytes: () => bus.work.maxDispatchBytes(),
        onRefused: (handler) => bus.work.onRefused(handler),
        onStored: (handler) => bus.work.onStored(handler),
        earliestDispatchAtMs: bus.work.earliestDispatchAtMs,
        createdAtMs: () => bus.work.createdAtMs(),
        onRestart: (handler) => bus.work.onRestart(handler),
        depths: () => bus.work.depths(),
      },
      usage: { append: (...given) => fault?.() ?? bus.usage.append(...given), backlog: () => bus.usage.backlog(), consume: notUsed },
    }),
    openTags: async () => tags,
    upgradeStreams: async () => upgrades,
    environment: {},
    print: (line) => lines.push(line),
    write: (text) => lines.push(text),
    writeError: () => {},
    progress: () => {},
    readLines: notUsed,
    columns: null,
    inspectStreams: notUsed,
    pingCache: notUsed,
    clock: systemClock,
    openLog: async () => silentLog,
  });
  program.exitOverride();
  for (const command of program.commands.flatMap((group) => [group, ...group.commands])) command.exitOverride().configureOutput({ writeErr: () => {} });
  await program.parseAsync(args, { from: 'user' });
  return lines.join('\n');
}

function notUsed(): never {
  throw new TypeError('the operator consumes nothing');
}

async function storeDeadLetter(
  id: string,
  source: string,
  { reason = 'it failed', body = '', ageSeconds = 0, partition = PARTITION as number | null } = {},
): Promise<void> {
  await database.query('insert into dead_letters (id, p, source, reason, body, created_at) values ($1, $2, $3, $4, $5, now() - make_interval(secs => $6))', [
    id,
    partition,
    source,
    reason,
    body,
    ageSeconds,
  ]);
}

async function letters(): Promise<string[]> {
  return (await database.query<{ id: string }>('select id from dead_letters order by id')).rows.map(({ id }) => id);
}

async function delivery(id: string, state: string): Promise<void> {
  await database.query(
    `insert into deliveries (id, p, session_id, run_id, url, host_allowlist, bundle_hash, idempotency_key, trace_id, traceparent, body, attempts, state, created_at, settled_at)
     values ($1, $2, $3, 'run_1', 'https://receiver.example/', '[]', 'bundle', 'key', 'trace', '00-aa-bb-01', '{}', 5, $4, now(), now())`,
    [id, PARTITION, SESSION, state],
  );
}

async function deliveryRow(id: string) {
  return (await database.query('select state, attempts, settled_at from deliveries where id = $1', [id])).rows[0];
}

function nextDelivery(): Promise<WorkItem> {
  return new Promise((resolve) => {
    const subscription = bus.work.consume('delivery', { concurrency: 1, ackWaitMs: 10_000 }, async (item) => {
      await item.ack();
      resolve(item);
      void subscription.stop();
    });
  });
}

async function commandsSince(sequence: number): Promise<{ messageId: string; body: string }[]> {
  return new Promise((resolve) => {
    const subscription = bus.commands.read(PARTITION, { sequence, fingerprint: null }, async (commands) => {
      resolve(commands);
      void subscription.stop();
    });
  });
}

const command = { v: 1, type: 'session.delete', sessionId: SESSION, commandId: 'cmd-1', sentAtMs: 1, answerTo: 'gw1', traceparent: null };

describe('dead-letters list', () => {
  it('refuses an unknown source, and an invalid limit', async () => {
    await expect(run('dead-letters', 'list', '--source', 'dreams')).rejects.toMatchObject({ exitCode: 1 });
    await expect(run('dead-letters', 'list', '--limit', '0')).rejects.toMatchObject({ exitCode: 1 });
    await expect(run('dead-letters', 'list', '--limit', 'many')).rejects.toMatchObject({ exitCode: 1 });
  });

  it('prints that there are none', async () => {
    expect(await run('dead-letters', 'list')).toBe('There are no dead letters.');
  });

  it('DESIGN 6: dead letters are listed the newest first, each name once, and none of a reason’s control characters', async () => {
    await storeDeadLetter('old', 'command', { ageSeconds: 60 });
    await storeDeadLetter('new', 'delivery', { ageSeconds: 1, reason: 'it\u001b[31m broke\nthere' });
    await storeDeadLetter('new', 'delivery', { ageSeconds: 30 });
    const lines = (await run('dead-letters', 'list')).split('\n');
    expect(lines[0]).toMatch(/^ID +SOURCE +DIED AT +REASON$/);
    expect(lines.slice(1).map((line) => line.split(/ +/).slice(0, 2))).toEqual([
      ['new', 'delivery'],
      ['old', 'command'],
    ]);
    expect(lines[1]).toContain('it [31m broke there');
  });

  it('prints everything as JSON, of one source and up to a limit', async () => {
    await storeDeadLetter('a', 'command', { body: '{"x":1}', ageSeconds: 3 });
    await storeDeadLetter('b', 'command', { ageSeconds: 2, partition: null });
    await storeDeadLetter('c', 'tool', { ageSeconds: 1 });
    const listed = JSON.parse(await run('dead-letters', 'list', '--json', '--source', 'command'));
    expect(listed).toMatchObject([
      { id: 'b', source: 'command', partition: null, reason: 'it failed' },
      { id: 'a', source: 'command', partition: PARTITION, body: '{"x":1}', created_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    ]);
    expect(JSON.parse(await run('dead-letters', 'list', '--json', '--limit', '1'))).toMatchObject([{ id: 'c' }]);
  });
});

describe('dead-letters replay', () => {
  it('refuses an unknown id, and what can not be replayed', async () => {
    await storeDeadLetter('call-1', 'tool');
    await storeDeadLetter('cmd-1', 'command', { body: 'not a command' });
    await storeDeadLetter('dlv-1', 'delivery');
    await expect(run('dead-letters', 'replay', 'none')).rejects.toMatchObject({ code: 'request.not_found' });
    await expect(run('dead-letters', 'replay', 'call-1')).rejects.toMatchObject({ code: 'request.invalid' });
    await expect(run('dead-letters', 'replay', 'cmd-1')).rejects.toMatchObject({ code: 'request.invalid' });
    await expect(run('dead-letters', 'replay', 'dlv-1')).rejects.toMatchObject({ code: 'request.not_found', message: 'the delivery dlv-1 is gone' });
    await expect(run('dead-letters', 'replay', 'call-1', '--source', 'delivery')).rejects.toMatchObject({ code: 'request.not_found' });
    expect(await letters()).toEqual(['call-1', 'cmd-1', 'dlv-1']);
  });

  it('DESIGN 6: a replayed dead delivery is open again, with all its attempts, and published to the workers', async () => {
    await delivery('dlv-1', 'dead');
    await storeDeadLetter('dlv-1', 'delivery');
    await storeDeadLetter('dlv-1', 'delivery', { ageSeconds: 60 });
    const next = nextDelivery();
    expect(await run('dead-letters', 'replay', 'dlv-1')).toMatch(/^dlv-1 is posted again, as dlv-1-replay-[0-9A-Z]{26}\.$/);

    const item = await next;
    const work = deliveryWork.parse(JSON.parse(item.body));
    expect(work).toMatchObject({ effectId: item.messageId, deliveryId: 'dlv-1', sessionId: SESSION, republished: false, traceparent: '00-aa-bb-01' });
    expect(work.deadlineAtMs).toBeGreaterThan(systemClock.nowMs() + 23 * 3_600_000);
    expect(await deliveryRow('dlv-1')).toEqual({ state: 'open', attempts: 0, settled_at: null });
    expect(await letters()).toEqual([]);
  });

  it('opens the row before a worker can get the item, and retains the dead letter when the queue refuses it', async () => {
    await delivery('dlv-1', 'dead');
    await storeDeadLetter('dlv-1', 'delivery');
    fault = () => Promise.reject(new Error('the broker is away'));
    await expect(run('dead-letters', 'replay', 'dlv-1')).rejects.toThrow('the broker is away');
    expect(published).toEqual(['open']);
    expect(await letters()).toEqual(['dlv-1']);

    fault = null;
    const next = nextDelivery();
    await run('dead-letters', 'replay', 'dlv-1');
    expect((await next).messageId).toMatch(/^dlv-1-replay-/);
    expect(await letters()).toEqual([]);
  });

  it('does not post again what was delivered meanwhile', async () => {
    await delivery('dlv-1', 'delivered');
    await storeDeadLetter('dlv-1', 'delivery');
    expect(await run('dead-letters', 'replay', 'dlv-1')).toBe('dlv-1 was delivered meanwhile: the dead letter is removed.');
    expect(await deliveryRow('dlv-1')).toMatchObject({ state: 'delivered', attempts: 5 });
    expect({ published, letters: await letters() }).toEqual({ published: [], letters: [] });
  });

  it('DESIGN 6: a replayed dead command is sent to its session again, under a new id, without waiting for the reply', async () => {
    await storeDeadLetter('cmd-1', 'command', { body: tags.tagged(JSON.stringify(command)) });
    const { lastSequence } = await bus.commands.state();
    expect(await run('dead-letters', 'replay', 'cmd-1')).toMatch(/^cmd-1 is appended to the command log again, as replay-[0-9a-f]{32}\.$/);

    const [appended] = await commandsSince(lastSequence);
    const parsed = sessionCommand.parse(JSON.parse(appended?.body ?? ''));
    expect(parsed).toEqual({ ...command, commandId: appended?.messageId, answerTo: null });
    expect(parsed.commandId).not.toBe('cmd-1');
    expect(tags.isTagged(appended?.body ?? '')).toBe(true);
    expect(appended?.body.match(/"tag"/g)).toHaveLength(1);
    expect(await letters()).toEqual([]);
  });

  it('is the same command when it is repeated, as after a crash between its two steps, and another one for another dead letter', async () => {
    const { lastSequence } = await bus.commands.state();
    await storeDeadLetter('cmd-1', 'command', { body: JSON.stringify(command), partition: null });
    const { rows } = await database.query<{ created_at: Date }>('select created_at from dead_letters');
    await run('dead-letters', 'replay', 'cmd-1');
    await storeDeadLetter('cmd-1', 'command', { body: JSON.stringify(command), partition: null });
    await database.query('update dead_letters set created_at = $1', [rows[0]?.created_at]);
    await run('dead-letters', 'replay', 'cmd-1');
    expect(await commandsSince(lastSequence)).toHaveLength(1);

    await storeDeadLetter('cmd-1', 'command', { body: JSON.stringify(command), ageSeconds: 5 });
    await run('dead-letters', 'replay', 'cmd-1');
    expect(await commandsSince(lastSequence)).toHaveLength(2);
  });

  it('appends a usage record to the log again, at once and as often as it is asked, and keeps the letter when it could not', async () => {
    await bus.usage.append('gen-1', '{"v":1}');
    await storeDeadLetter('gen-1', 'usage', { body: '{"v":1}', partition: null });
    fault = () => Promise.reject(new Error('the broker is away'));
    await expect(run('dead-letters', 'replay', 'gen-1')).rejects.toThrow('the broker is away');
    expect(await letters()).toEqual(['gen-1']);
    fault = null;

    expect(await run('dead-letters', 'replay', 'gen-1')).toBe('gen-1 is in the usage log again.');
    expect(await letters()).toEqual([]);
    // Though the log has seen its id within the dedupe window.
    expect((await bus.usage.backlog()).records).toBe(2);
  });

  it('requires a choice when several have the id and can be replayed', async () => {
    await delivery('x', 'dead');
    await storeDeadLetter('x', 'delivery');
    await storeDeadLetter('x', 'command', { body: JSON.stringify(command) });
    await storeDeadLetter('x', 'tool');
    await expect(run('dead-letters', 'replay', 'x')).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining('--source') });
    expect(await run('dead-letters', 'replay', 'x', '--source', 'command')).toContain('appended to the command log again');
    expect(await letters()).toEqual(['x', 'x']);
  });
});

describe('streams', () => {
  it('prints the outcome of each stream, and which settings were changed', async () => {
    upgrades = [
      { name: 'CMD', outcome: 'changed', differences: [{ field: 'max_bytes', found: 1_000, declared: 2_000 }] },
      { name: 'WORK', outcome: 'unchanged' },
      { name: 'TOK', outcome: 'created' },
    ];

    expect(await run('streams')).toBe('CMD: changed\n  max_bytes: 1000 -> 2000\nWORK: as declared\nTOK: created');
  });

  it('ends with an error that names the streams that could not be changed', async () => {
    upgrades = [{ name: 'TOK', outcome: 'refused', reason: 'the stream TOK of the broker has sources' }];

    await expect(run('streams')).rejects.toMatchObject({ code: 'bus.stream_refused', message: expect.stringContaining('TOK') });
  });
});
