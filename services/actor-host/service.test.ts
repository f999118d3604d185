import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { routerCall } from '#bus/messages/router.ts';
import type { AnswerMessage, CommandOf, NoticeMessage, SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { bundleBody, hashOf } from '#shared/config/bundle-body.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openPglite } from '#shared/storage/pglite/open-pglite.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { startActorHost } from './service.ts';

const HEADER = { v: 1 as const, sentAtMs: 0, answerTo: 'gw1', traceparent: null };
/** One for all tests, emptied before each: to open one takes longer than most of them. */
let shared: Database;
let houses: House[] = [];

beforeAll(async () => {
  shared = await openPglite({ folder: null });
  await migrate(shared);
});

afterAll(async () => {
  await shared.close();
});

afterEach(async () => {
  await Promise.all(houses.map((house) => house.close()));
  houses = [];
});

describe('the actor host', () => {
  it('stores what follows from a command in one commit, answers, tells readers and publishes the call', async () => {
    const house = await openHouse();
    await house.start();
    const work = house.nextWork();
    await house.send(create('ses_a'));
    await house.send(post('ses_a', 'How long is the warranty?'));

    const call = routerCall.parse(JSON.parse((await work).body));
    expect(call).toMatchObject({ origin: 'ses_a', want: 'none', reply: { sessionId: 'ses_a' }, request: { model: 'switchyard/assistant' } });
    expect(call.request.messages.map((message) => message.role)).toEqual(['system', 'user']);
    expect(call.request.messages[1]?.content).toBe('How long is the warranty?');
    expect(house.answers.map(({ answer }) => answer.ok)).toEqual([true, true]);
    expect(house.notices.at(-1)).toMatchObject({ first: 0, last: 3 });

    await house.send(completed('ses_a', call.callId, 'Two years.'));
    await eventually(async () => (await house.log('ses_a')).length === 6);
    expect((await house.log('ses_a')).map((event) => event.offset)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await house.count('effects', `state = 'done'`)).toBe(1);
    expect(await house.count('timers')).toBe(0);
    await eventually(async () => (await house.count('outbox')) === 0);
  });

  it('answers a command that was applied before like the first time, and changes nothing', async () => {
    const house = await openHouse();
    await house.start();
    await house.send(create('ses_a'));
    const command = { ...post('ses_a', 'once'), triggersTurn: false };
    await house.send(command, 'first');
    await eventually(() => house.answers.length === 2);
    await house.send(command, 'long after the window of the bus');
    await eventually(() => house.answers.length === 3);

    expect(house.answers[2]).toEqual({ ...house.answers[1], repeat: true });
    expect(await house.log('ses_a')).toHaveLength(1);
  });

  it('applies a command once that comes twice in one batch', async () => {
    const house = await openHouse();
    const command = { ...post('ses_a', 'once'), triggersTurn: false };
    await house.send(create('ses_a'));
    await house.send(command, 'first');
    await house.send(command, 'second');
    await house.start();
    await eventually(() => house.answers.length === 3);

    expect(house.answers.map(({ repeat }) => repeat)).toEqual([false, false, true]);
    expect(await house.log('ses_a')).toHaveLength(1);
  });

  it('gives up a partition that another host has taken, stores nothing there, and serves the others', async () => {
    const house = await openHouse();
    await house.start();
    await house.send(create('ses_a'));
    await house.send(create('ses_b'));
    await eventually(() => house.answers.length === 2);
    await house.database.query('update parts set epoch = epoch + 1 where p = $1', [partitionOf('ses_a')]);
    await house.send({ ...post('ses_a', 'for the new owner'), triggersTurn: false });
    await house.send({ ...post('ses_b', 'hello'), triggersTurn: false });
    await eventually(() => house.answers.length === 3);

    expect(await house.log('ses_a')).toEqual([]);
    expect(await house.log('ses_b')).toHaveLength(1);
    // The new owner finds the command behind the cursor it takes over.
    await house.start();
    await eventually(async () => (await house.log('ses_a')).length === 1);
  });

  it('isolates a command that can not be stored: a dead letter, an answer, and its neighbours go on', async () => {
    const house = await openHouse();
    await house.send(create('ses_a'));
    // Not a W3C trace id: a text column refuses the character.
    await house.send({ ...post('ses_a', 'poison'), triggersTurn: false, traceId: '\0' });
    await house.send({ ...post('ses_a', 'fine'), triggersTurn: false });
    await house.start();
    await eventually(() => house.answers.length === 3);

    expect((await house.log('ses_a')).map((event) => 'text' in event && event.text)).toEqual(['fine']);
    expect(house.answers.map(({ answer }) => answer.ok)).toEqual([true, false, true]);
    expect(await house.count('dead_letters')).toBe(1);
  });

  it('buries what is not a command and goes on behind it', async () => {
    const house = await openHouse();
    await house.bus.commands.append(partitionOf('ses_a'), 'nonsense', 'not json');
    await house.send(create('ses_a'));
    await house.start();
    await eventually(() => house.answers.length === 1);

    const { rows } = await house.database.query('select id, source, body from dead_letters');
    expect(rows).toEqual([{ id: 'nonsense', source: 'command', body: 'not json' }]);
  });

  it('gives up a partition whose snapshots are of a newer version, and loses no command of it', async () => {
    const house = await openHouse();
    const host = await house.start();
    await house.send(create('ses_a'));
    await eventually(() => house.answers.length === 1);
    await host.stop();
    await house.database.query(`update sessions set snapshot = '{"v":9999,"session":{},"turn":null}'`);
    const before = await house.cursorOf('ses_a');
    await house.start();
    await house.send(post('ses_a', 'later'));
    await house.send(create('ses_b'));
    await eventually(() => house.answers.length === 2);

    expect(await house.cursorOf('ses_a')).toBe(before);
    expect(await house.count('dead_letters')).toBe(0);
  });

  it('does not apply a commit twice whose acknowledgement was lost', async () => {
    const house = await openHouse();
    await house.start();
    await house.send(create('ses_a'));
    await eventually(() => house.answers.length === 1);
    house.faults.push('after');
    await house.send({ ...post('ses_a', 'once'), triggersTurn: false });
    await eventually(() => house.answers.length === 2);
    await house.send({ ...post('ses_a', 'twice'), triggersTurn: false });
    await eventually(() => house.answers.length === 3);

    expect((await house.log('ses_a')).map((event) => event.offset)).toEqual([0, 1]);
  });

  it('tries a commit again that never reached the database', async () => {
    const house = await openHouse();
    await house.start();
    house.faults.push('before', 'before');
    await house.send(create('ses_a'));
    await eventually(() => house.answers.length === 1);

    expect(house.answers[0]).toMatchObject({ repeat: false, answer: { ok: true } });
  });

  it('publishes after a take-over what a dead host had stored and not published, under the same id and with the same text', async () => {
    const house = await openHouse();
    await house.start();
    const first = house.nextWork();
    await house.send(create('ses_a'));
    await house.send(post('ses_a', 'hello'));
    const item = await first;
    // As if that host had died between its commit and the publish: the row is there, the bus knows nothing.
    await house.database.query('insert into outbox (p, id, created_at) values ($1, $2, now())', [partitionOf('ses_a'), item.messageId]);
    const survivor = await house.onAnotherBus();
    const again = survivor.nextWork();
    await survivor.start();

    expect(await again).toMatchObject({ messageId: item.messageId, body: item.body });
  });

  it('lets a deadline fire after a take-over', async () => {
    const house = await openHouse({ turnTimeoutMs: 300 });
    const host = await house.start();
    await house.send(create('ses_a'));
    await house.send(post('ses_a', 'hello'));
    await eventually(() => house.answers.length === 2);
    await host.stop();
    await house.start();
    await eventually(async () => (await house.log('ses_a')).length === 6);

    expect((await house.log('ses_a')).slice(4)).toMatchObject([{ status: 'error' }, { status: 'ready' }]);
    expect(await house.count('timers')).toBe(0);
  });

  it('waits at its stop for the turn in progress', async () => {
    const house = await openHouse({ drainTimeoutMs: 5_000 });
    const host = await house.start();
    const work = house.nextWork();
    await house.send(create('ses_a'));
    await house.send(post('ses_a', 'hello'));
    const { messageId } = await work;
    const stopped = host.stop();
    await house.send(completed('ses_a', messageId, 'Hello!'));
    await stopped;

    expect((await house.log('ses_a')).at(-1)).toMatchObject({ status: 'ready' });
    const { rows } = await house.database.query('select distinct owner from parts');
    expect(rows).toEqual([{ owner: null }]);
  });

  it('frees the command log of what is applied, and never of what is not', async () => {
    const house = await openHouse({ purgeEveryMs: 20 });
    const host = await house.start();
    for (const id of ['ses_a', 'ses_b', 'ses_c']) await house.send(create(id));
    await eventually(() => house.answers.length === 3);
    const { lastSequence } = await house.bus.commands.state();
    await eventually(async () => (await house.bus.commands.state()).firstSequence >= lastSequence);
    await host.stop();

    // Nobody applies these, and another host's rounds may pass over them as often as they like.
    await house.send({ ...post('ses_a', 'one'), triggersTurn: false });
    await house.send({ ...post('ses_b', 'two'), triggersTurn: false });
    await house.start();
    await eventually(() => house.answers.length === 5);
    expect(await house.log('ses_a')).toHaveLength(1);
    expect(await house.log('ses_b')).toHaveLength(1);
  });

  it('refuses a store that was laid out for another number of partitions', async () => {
    const house = await openHouse();
    await house.database.query(`insert into meta (key, value) values ('partition_count', '16')`);

    await expect(house.start()).rejects.toMatchObject({ code: 'storage.schema_refused' });
  });

  it('keeps hundreds of sessions apart: dense offsets, one ready a turn, no message lost', async () => {
    const house = await openHouse();
    await house.start();
    house.answerAllCalls();
    const ids = Array.from({ length: 200 }, (_, place) => `ses_${place}`);
    await Promise.all(ids.map((id) => house.send(create(id))));
    for (let round = 0; round < 3; round += 1) await Promise.all(ids.map((id) => house.send(post(id, `message ${round}`))));
    await eventually(async () => (await house.count('effects', `state = 'open'`)) === 0 && house.answers.length === 800, 20_000);

    for (const id of ids) {
      const log = await house.log(id);
      expect(log.map((event) => event.offset)).toEqual(log.map((_, place) => place));
      expect(log.filter((event) => event.kind === 'user_message')).toHaveLength(3);
      expect(log.at(-1)).toMatchObject({ status: 'ready' });
    }
  }, 60_000);
});

interface House {
  bus: Bus;
  database: Database;
  answers: AnswerMessage[];
  notices: NoticeMessage[];
  /** What happens to the next commits: the connection breaks before or after the statement was carried out. */
  faults: ('before' | 'after')[];
  start(): Promise<{ stop(): Promise<void> }>;
  send(command: SessionCommand, messageId?: string): Promise<unknown>;
  nextWork(): Promise<WorkItem>;
  answerAllCalls(): void;
  log(sessionId: string): Promise<ConversationEvent[]>;
  count(table: string, where?: string): Promise<number>;
  cursorOf(sessionId: string): Promise<number | undefined>;
  /** The same database, and a bus that has lost everything. */
  onAnotherBus(): Promise<House>;
  close(): Promise<void>;
}

interface Options {
  turnTimeoutMs?: number;
  drainTimeoutMs?: number;
  purgeEveryMs?: number;
}

async function openHouse(options: Options = {}): Promise<House> {
  const database = shared;
  await empty(database);
  const body = bundleBody.parse({ manifest: MANIFEST, documents: { ...NO_DOCUMENTS, prompts: [PROMPT] } });
  const bundle = { hash: hashOf(body), body };
  await storeBundle(database, bundle);
  HEADER_BUNDLE.hash = bundle.hash;
  return houseOn(database, await openMemoryBus({ database, clock: systemClock, log: silentLog }), options);
}

const HEADER_BUNDLE = { hash: '' };
const NO_DOCUMENTS = { routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] };
const PROMPT = { id: 'support', version: 1, type: 'text', text: 'You are {{agent.name}}.', created_at: '2026-01-01T00:00:00Z' };
const MANIFEST = {
  name: 'Support',
  id: 'support',
  version: '1',
  agent_config: {
    runtime: { api_key: '${AGENT_API_KEY}' },
    platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
    llms: { default: 'switchyard/assistant', api_key: '${ROUTER_API_KEY}' },
    context: { system_prompt: { id: 'support', version: 1 }, language: 'match_user' },
  },
};

function houseOn(database: Database, bus: Bus, options: Options): House {
  const answers: AnswerMessage[] = [];
  const notices: NoticeMessage[] = [];
  const faults: House['faults'] = [];
  const hosts: { stop(): Promise<void> }[] = [];
  bus.notices.subscribe(subjectOf(addresses.answers, 'gw1'), (_, body) => answers.push(JSON.parse(body) as AnswerMessage));
  bus.notices.subscribe(patternOf(addresses.notices), (_, body) => notices.push(JSON.parse(body) as NoticeMessage));
  const config = {
    coalesceMs: 150,
    turnTimeoutMs: options.turnTimeoutMs ?? 60_000,
    drainTimeoutMs: options.drainTimeoutMs ?? 0,
    streaming: false,
    maxTokens: 1_000,
    purgeEveryMs: options.purgeEveryMs ?? 60_000,
  };
  const house: House = {
    bus,
    database,
    answers,
    notices,
    faults,
    start: async () => {
      const host = await startActorHost({ config, bus, database: withFaults(database, faults), clock: systemClock, log: silentLog });
      hosts.push(host);
      return host;
    },
    send: (command, messageId = command.commandId) => bus.commands.append(partitionOf(command.sessionId), messageId, JSON.stringify(command)),
    nextWork: () =>
      new Promise((resolve) => {
        const reader = bus.work.consume('router.turn', { concurrency: 1, ackWaitMs: 30_000 }, async (item) => {
          await item.ack();
          resolve(item);
          reader.stop().catch(() => {});
        });
      }),
    answerAllCalls: () => {
      bus.work.consume('router.turn', { concurrency: 50, ackWaitMs: 30_000 }, async (item) => {
        const call = routerCall.parse(JSON.parse(item.body));
        await house.send(completed(call.origin, call.callId, 'a reply'));
        await item.ack();
      });
    },
    log: async (sessionId) =>
      (await database.query<{ body: ConversationEvent }>('select body from events where session_id = $1 order by off', [sessionId])).rows.map(
        (row) => row.body,
      ),
    count: async (table, where = 'true') => (await database.query<{ n: number }>(`select count(*) as n from ${table} where ${where}`)).rows[0]?.n ?? -1,
    cursorOf: async (sessionId) =>
      (await database.query<{ cursor: number }>('select cursor from parts where p = $1', [partitionOf(sessionId)])).rows[0]?.cursor,
    onAnotherBus: async () => {
      for (const table of ['bus_log', 'bus_work', 'bus_meta']) await database.query(`delete from ${table}`);
      return houseOn(database, await openMemoryBus({ database, clock: systemClock, log: silentLog }), options);
    },
    close: async () => {
      await Promise.all(hosts.map((host) => host.stop()));
      await bus.close();
    },
  };
  houses.push(house);
  return house;
}

async function empty(database: Database): Promise<void> {
  const { rows } = await database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_name <> 'schema_migrations'`,
  );
  await database.query(`truncate ${rows.map((row) => row.name).join(', ')}`);
}

/** A database whose commits can lose their connection. */
function withFaults(database: Database, faults: House['faults']): Database {
  const lost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  return {
    ...database,
    transaction: (work) => database.transaction(work),
    close: () => database.close(),
    query: async (statement, parameters) => {
      const fault = typeof statement !== 'string' && statement.name === 'commit' ? faults.shift() : undefined;
      if (fault === 'before') throw lost();
      const result = await database.query<never>(statement, parameters);
      if (fault === 'after') throw lost();
      return result;
    },
  };
}

function create(sessionId: string): CommandOf<'session.create'> {
  return {
    ...HEADER,
    type: 'session.create',
    sessionId,
    commandId: `${sessionId}-create`,
    customerId: 'cus_1',
    agentId: 'acme-support',
    title: null,
    mode: 'auto',
    metadata: {},
    labels: [],
    allowGreeting: true,
    bundleHash: HEADER_BUNDLE.hash,
  };
}

let posts = 0;
function post(sessionId: string, text: string): CommandOf<'message.post'> {
  posts += 1;
  return {
    ...HEADER,
    type: 'message.post',
    sessionId,
    commandId: `cmd_${posts}`,
    source: 'customer',
    text,
    metadata: {},
    triggersTurn: true,
    traceId: String(posts).padStart(32, '0'),
    bundleHash: HEADER_BUNDLE.hash,
  };
}

function completed(sessionId: string, callId: string, text: string): CommandOf<'call.completed'> {
  const turnId = callId.slice(0, callId.lastIndexOf('-'));
  return {
    ...HEADER,
    answerTo: null,
    type: 'call.completed',
    sessionId,
    commandId: callId,
    turnId,
    callId,
    text,
    model: 'scripted/assistant',
    provider: 'Scripted',
    finishReason: 'stop',
    usage: null,
  };
}

async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 5_000): Promise<void> {
  const limitAtMs = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > limitAtMs) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
