import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus, WorkItem } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { asFirstVersion, asSecondVersion, firstCommand } from '#bus/messages/test-support/first-version.ts';
import { TOOL_WORK_VERSION } from '#bus/messages/tool.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { openHandMadeServer, type ToolServerDouble } from './test-support/tool-server-doubles.ts';
import { callItem, deliveryItem, listItem, SESSION, WAIT, WorkerDeployment } from './test-support/worker-deployment.ts';

let database: Database;
/** Offset of the bus's and the workers' clock. */
let aheadMs = 0;
const clock = { nowMs: () => systemClock.nowMs() + aheadMs };
let bus: Bus;
let deployment: WorkerDeployment;
let server: ToolServerDouble;
let bundleHash: string;
/** Response to a call; undefined leaves it open. */
let onCall: (response: ServerResponse) => unknown;
/** By attempt. */
let posts: string[];
const poster = {
  post: async ({ headers }: { headers: Record<string, string> }) => {
    posts.push(headers['x-switchyard-attempt'] ?? '');
    return { status: 200, retryAfterMs: null };
  },
};

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

beforeEach(async () => {
  aheadMs = 0;
  posts = [];
  onCall = () => ({ content: [{ type: 'text', text: 'done' }] });
  bus = await openMemoryBus({ database, clock });
  deployment = await WorkerDeployment.open({ database, bus });
  server = await openHandMadeServer((message, response) => {
    if (message.method === 'tools/list') return { tools: [{ name: 'a', inputSchema: { type: 'object' } }] };
    return message.method === 'tools/call' ? onCall(response) : undefined;
  });
  bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
});
afterEach(async () => {
  await deployment.close();
  await server.close();
  await bus.close();
  await database.query('delete from bundles');
});

const start = (deps: Parameters<WorkerDeployment['start']>[1] = {}, config: Parameters<WorkerDeployment['start']>[0] = {}) =>
  deployment.start(config, { poster, clock, ...deps });
const callsMade = () => server.messages('tools/call').length;

async function call(fields: Parameters<typeof callItem>[3] = {}, { repeatable = false } = {}) {
  return callItem(bundleHash, await deployment.toolList([{ name: 'a', repeatable }]), 'shop:a', fields);
}

const delivery = async (fields: Parameters<typeof deliveryItem>[1] = {}) =>
  deliveryItem(await deployment.delivery({ url: 'https://receiver.example/', bundleHash }), fields);

/** The bus with changed work items. */
function busThat(change: (item: WorkItem) => Partial<WorkItem>, commands: Bus['commands'] = bus.commands, ackWaitMs = 60_000): Bus {
  return {
    ...bus,
    commands,
    work: {
      publish: (...args) => bus.work.publish(...args),
      dispatch: (...args) => bus.work.dispatch(...args),
      maxDispatchBytes: () => bus.work.maxDispatchBytes(),
      onRefused: (handler) => bus.work.onRefused(handler),
      onStored: (handler) => bus.work.onStored(handler),
      earliestDispatchAtMs: bus.work.earliestDispatchAtMs,
      createdAtMs: () => bus.work.createdAtMs(),
      onRestart: (handler) => bus.work.onRestart(handler),
      depths: () => bus.work.depths(),
      consume: (kind, options, handler) => bus.work.consume(kind, { ...options, ackWaitMs }, (item) => handler({ ...item, ...change(item) })),
    },
  };
}

/** The database, whose connection is lost behind the first such statement: it was carried out, and the worker gets no answer. */
function databaseThatLosesAnswer(name: string): Database {
  let isLost = false;
  return {
    async query(statement, parameters) {
      const answer = await database.query(statement, parameters);
      if (isLost || typeof statement === 'string' || statement.name !== name) return answer as never;
      isLost = true;
      throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
    },
    transaction: (work) => database.transaction(work),
    close: () => database.close(),
  };
}

async function deadLetters() {
  const { rows } = await database.query<{ id: string; source: string; reason: string; body: string }>('select id, source, reason, body from dead_letters');
  return rows;
}

describe('the rules of work', () => {
  it('DESIGN 6 rule 1: an item whose effect was not marked after its publish comes again as republished, and is not executed twice', async () => {
    await start();
    const item = await call();
    await deployment.effect(item.effectId, 'open');
    await deployment.publish('tool', item);
    await deployment.reportOf('tool.completed', item.effectId);
    await deployment.gone(item.effectId);
    await database.query(`update effects set state = 'done' where id = $1`, [item.effectId]);
    await deployment.close();
    await bus.close();
    // As after a broker's restart: its dedupe window no longer has this item.
    bus = await openMemoryBus({ database, clock });
    deployment = await WorkerDeployment.open({ database, bus });
    await start();
    await deployment.publish('tool', { ...item, republished: true });

    await deployment.gone(item.effectId);
    expect(callsMade()).toBe(1);
  });

  it('DESIGN 6 rule 2: a first delivery reads nothing of its effect', async () => {
    await start();
    const [tool, callback] = [await call(), await delivery()];
    await deployment.publish('tool', tool);
    await deployment.publish('delivery', callback);
    await deployment.reportOf('tool.completed', tool.effectId);
    await deployment.reportOf('delivery.reported', callback.effectId);
    expect(deployment.queries).not.toContain('effect_state');
  });

  it.each(['done', 'superseded'] as const)('DESIGN 6 rule 2: a redelivered item is acked when its effect is %s', async (state) => {
    const [again, republished, old, posted] = [await call(), await call({ republished: true }), await call(), await delivery()];
    for (const { effectId } of [again, republished, old, posted]) await deployment.effect(effectId, state);
    await deployment.crashWith('tool', again);
    await deployment.crashWith('delivery', posted);
    await deployment.publish('tool', republished);
    await deployment.publish('tool', old);
    aheadMs = 61_000;
    await start();

    for (const { effectId } of [again, republished, old, posted]) await deployment.gone(effectId);
    expect({ calls: callsMade(), posts, commands: deployment.commands }).toEqual({ calls: 0, posts: [], commands: [] });
    expect(deployment.queries.filter((name) => name === 'effect_state')).toHaveLength(4);
  });

  it('DESIGN 6 rule 2: a redelivered item is executed when its effect is open, and a tool is not called when it has none', async () => {
    const [open, nobodys] = [await call({ republished: true }), await call({ republished: true })];
    await deployment.effect(open.effectId, 'open');
    await start();
    await deployment.publish('tool', nobodys, { hasRow: false });
    await deployment.publish('tool', open);

    expect((await deployment.reportOf('tool.completed', open.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
    await deployment.gone(nobodys.effectId);
    expect(callsMade()).toBe(1);
  });

  it('DESIGN 6 rule 3: a call that must not happen twice is claimed right before its request', async () => {
    let claimed: unknown[] = [];
    const item = await call();
    onCall = (response) => {
      const looking = database.query('select 1 as one from claims where effect_id = $1', [item.effectId]);
      void looking.then(({ rows }) => {
        claimed = rows;
        response.destroy();
      });
    };
    await start();
    await deployment.publish('tool', item);
    await deployment.reportOf('tool.completed', item.effectId);
    expect(claimed).toHaveLength(1);
  });

  it('DESIGN 6 rule 3: an existing claim makes the outcome unknown, and no request is sent', async () => {
    const item = await call();
    await deployment.effect(item.effectId, 'open');
    await database.query('insert into claims (effect_id) values ($1)', [item.effectId]);
    await deployment.crashWith('tool', item);
    await start();

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    expect(callsMade()).toBe(0);
  });

  it('DESIGN 6 rule 3: a claim whose acknowledgement by the database is lost is that of its worker, which makes the call', async () => {
    await start({ database: databaseThatLosesAnswer('effect_worker_claim') });
    const item = await call();
    await deployment.publish('tool', item);

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
    expect(callsMade()).toBe(1);
  });

  it('DESIGN 6 rule 3: a call that its cancelled run has withdrawn is not made', async () => {
    const item = await call();
    await database.query('insert into claims (effect_id, withdrawn) values ($1, true)', [item.effectId]);
    await start();
    await deployment.publish('tool', item);

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    expect(callsMade()).toBe(0);
  });

  it('DESIGN 6 rule 3: a repeatable call is repeated without a claim', async () => {
    const item = await call({}, { repeatable: true });
    await deployment.effect(item.effectId, 'open');
    await deployment.crashWith('tool', item);
    await start();

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
    expect((await database.query('select 1 as one from claims where effect_id = $1', [item.effectId])).rows).toEqual([]);
  });

  it.each(['done', 'superseded', 'deleted'] as const)(
    'DESIGN 6 rule 3: a repeatable call is not made when its effect is closed (%s), though no abort has arrived',
    async (state) => {
      const [closed, open] = [await call({}, { repeatable: true }), await call({}, { repeatable: true })];
      if (state !== 'deleted') await deployment.effect(closed.effectId, state);
      await start();
      await deployment.publish('tool', closed, { hasRow: false });
      await deployment.gone(closed.effectId);
      await deployment.publish('tool', open);

      await deployment.reportOf('tool.completed', open.effectId);
      expect(deployment.commands.map(({ commandId }) => commandId)).toEqual([open.effectId]);
      expect(callsMade()).toBe(1);
      expect(deployment.lines.join()).not.toContain('has failed');
    },
  );

  it('DESIGN 6 rule 4: an item whose lease can not be extended is aborted before another worker may have it', async () => {
    const lease = { ackWaitMs: 2_000, extendEveryMs: 400 };
    /** After the first failure, eight times as often. */
    const retryEveryMs = lease.extendEveryMs / 8;
    let isClosed = false;
    let extensions = 0;
    const item = await call({}, { repeatable: true });
    await deployment.effect(item.effectId, 'open');
    onCall = (response) => {
      if (isClosed) return { content: [{ type: 'text', text: 'done' }] };
      response.on('close', () => {
        isClosed = true;
      });
      return undefined;
    };
    const away = busThat(() => ({
      working: () => {
        extensions += 1;
        return Promise.reject(new Error('the broker is away'));
      },
    }));
    await start({ bus: away }, { lease });
    await deployment.publish('tool', item);

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
    // On a busy machine there are fewer, never more than fit before the lease ends.
    expect(extensions).toBeGreaterThan(0);
    expect(extensions).toBeLessThan(1 + (lease.ackWaitMs - lease.extendEveryMs) / retryEveryMs);
    expect(callsMade()).toBe(2);
  });

  it('DESIGN 6 rule 4: a claimed call that was refused is not tried again when its lease is lost', async () => {
    onCall = (response) => void response.writeHead(503).end();
    const away = busThat(() => ({ working: () => Promise.reject(new SwitchyardError('service.unreachable', 'no broker')) }));
    // The pause before the next try is longer.
    await start({ bus: away }, { lease: { ackWaitMs: 600, extendEveryMs: 100 } });
    const item = await call();
    await deployment.publish('tool', item);

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed' });
    expect(callsMade()).toBe(1);
  });

  it.each(['in flight', 'answered'] as const)(
    'DESIGN 6 rule 4: a claimed call goes on when its lease is lost, and its outcome is reported when the broker is back (%s by then)',
    async (progress) => {
      const lease = { ackWaitMs: 1_500, extendEveryMs: 300 };
      const refused = () => Promise.reject(new SwitchyardError('service.unreachable', 'no broker'));
      const item = await call();
      let isBack = false;
      let response: ServerResponse | undefined;
      if (progress === 'in flight') {
        onCall = (opened) => {
          response = opened;
        };
      }
      const answer = () => {
        const result = { content: [{ type: 'text', text: 'done' }] };
        const body = JSON.stringify({ jsonrpc: '2.0', id: server.messages('tools/call')[0]?.id, result });
        response?.writeHead(200, { 'content-type': 'application/json' }).end(body);
      };
      const commands: Bus['commands'] = { ...bus.commands, append: (...args) => (isBack ? bus.commands.append(...args) : refused()) };
      const away = busThat(
        ({ deliveryCount, working }) => {
          // The lease is over by then.
          if (deliveryCount > 1 && !isBack) {
            isBack = true;
            answer();
          }
          return { working: () => (isBack ? working() : refused()) };
        },
        commands,
        lease.ackWaitMs,
      );
      await start({ bus: away }, { lease });
      await deployment.publish('tool', item);

      expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'done' });
      await deployment.gone(item.effectId);
      expect(callsMade()).toBe(1);
      expect(deployment.commands.filter(({ commandId }) => commandId === item.effectId)).toHaveLength(1);
    },
  );

  it('DESIGN 6 rule 5: what is past its deadline is not begun', async () => {
    const past = { deadlineAtMs: clock.nowMs() - 1 };
    const list = listItem(bundleHash, ['shop'], past);
    const [tool, callback] = [await call(past), await delivery(past)];
    const begun = await call({ ...past, republished: true });
    await deployment.effect(begun.effectId, 'open');
    await database.query('insert into claims (effect_id) values ($1)', [begun.effectId]);
    await start();
    for (const item of [tool, begun, list]) await deployment.publish('tool', item);
    await deployment.publish('delivery', callback);

    expect((await deployment.reportOf('tool.completed', tool.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'timeout' });
    expect((await deployment.reportOf('tool.completed', begun.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    expect(await deployment.reportOf('tools.listed', list.effectId)).toMatchObject({ lists: {}, unavailable: { shop: 'unreachable' }, timedOut: true });
    await deployment.gone(callback.effectId);
    expect({ calls: callsMade(), posts, attempts: await deployment.attemptsOf(callback.deliveryId) }).toEqual({ calls: 0, posts: [], attempts: 0 });
    expect(deployment.commands.filter(({ type }) => type === 'delivery.reported')).toEqual([]);
  });

  it('DESIGN 6 rule 6: an item that is a day old is dropped', async () => {
    const callback = await delivery({ deadlineAtMs: clock.nowMs() + 48 * 3_600_000 });
    await deployment.publish('delivery', callback);
    aheadMs = 24 * 3_600_000 + 1_000;
    await start();
    await deployment.gone(callback.effectId);
    expect(posts).toEqual([]);
  });

  it('DESIGN 6 rule 6: a result waits for capacity in the log, and its item is acked only then', async () => {
    const item = await call();
    let refusals = 0;
    const acks: string[] = [];
    const commands: Bus['commands'] = {
      ...bus.commands,
      append: async (partition, messageId, body) => {
        acks.push('append');
        if (refusals < 2) {
          refusals += 1;
          throw new SwitchyardError('bus.full', 'the command log is full');
        }
        return bus.commands.append(partition, messageId, body);
      },
    };
    const noting = async (ack: () => Promise<void>) => {
      acks.push('ack');
      await ack();
    };
    await start({ bus: busThat(({ ack }) => ({ ack: () => noting(ack) }), commands) });
    await deployment.publish('tool', item);

    await deployment.reportOf('tool.completed', item.effectId);
    await deployment.gone(item.effectId);
    expect(acks).toEqual(['append', 'append', 'append', 'ack']);
    expect(callsMade()).toBe(1);
  });

  it('DESIGN 6 rule 7: attempts are counted in the row, and never by the queue', async () => {
    const callback = await delivery();
    await deployment.effect(callback.effectId, 'open');
    await deployment.crashWith('delivery', callback, 3);
    await start();

    expect(await deployment.reportOf('delivery.reported', callback.effectId)).toMatchObject({ outcome: 'delivered', attempts: 1 });
    expect(posts).toEqual(['1']);
  });

  it('DESIGN 6 rule 7: a worker that dies in the last attempt leaves the delivery exhausted, and no further attempt is made', async () => {
    const deliveryId = await deployment.delivery({ url: 'https://receiver.example/', bundleHash, attempts: 5 });
    const item = deliveryItem(deliveryId);
    await deployment.effect(item.effectId, 'open');
    await deployment.crashWith('delivery', item);
    await start();

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'exhausted', attempts: 5 });
    expect(posts).toEqual([]);
    expect(await deployment.attemptsOf(deliveryId)).toBe(5);
  });

  it.each([0, 4])('DESIGN 6 rule 7: an attempt whose acknowledgement by the database is lost is counted once, and made (%i before it)', async (attempts) => {
    const deliveryId = await deployment.delivery({ url: 'https://receiver.example/', bundleHash, attempts });
    await start({ database: databaseThatLosesAnswer('effect_worker_attempt') });
    const item = deliveryItem(deliveryId);
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'delivered', attempts: attempts + 1 });
    expect(posts).toEqual([String(attempts + 1)]);
    expect(await deployment.attemptsOf(deliveryId)).toBe(attempts + 1);
  });
});

it('DESIGN 12: counts redeliveries, and tool calls and callbacks by outcome', async () => {
  const metrics = openMetrics();
  const of = async (name: string) => seriesOf(await metrics.text(), `switchyard_${name}`).filter((line) => !line.endsWith(' 0'));
  const [again, refused, callback] = [await call(), await call({ toolId: 'nobodys:a' }), await delivery()];
  await deployment.effect(again.effectId, 'open');
  await deployment.crashWith('tool', again);
  onCall = () => ({ isError: true, content: [{ type: 'text', text: 'no' }] });
  await start({ metrics });
  await deployment.publish('tool', refused);
  await deployment.publish('delivery', callback);
  for (const { effectId } of [again, refused, callback]) await deployment.gone(effectId);

  expect(await of('work_redeliveries_total')).toEqual(['{kind="tool"} 1']);
  expect(await of('tool_calls_total')).toEqual(['{outcome="error"} 1', '{outcome="refused"} 1']);
  expect(await of('tool_call_duration_seconds_count')).toEqual(['2']);
  expect(await of('callback_attempts_total')).toEqual(['{outcome="delivered"} 1']);
  expect(await of('dead_letters_total')).toEqual([]);
  expect(seriesOf(await metrics.text(), 'switchyard_work_queue_depth')).toEqual(['{kind="tool"} 0', '{kind="delivery"} 0']);
});

describe('an item that fails five times', () => {
  afterEach(() => database.query('delete from dead_letters'));

  it('DESIGN 6: an item of a tool that fails five times becomes a failure to its owner and a dead letter, whatever its workers died of', async () => {
    const [item, list] = [await call(), listItem(bundleHash, ['shop'])];
    for (const { effectId } of [item, list]) await deployment.effect(effectId, 'open');
    await deployment.crashWith('tool', item, 5);
    await deployment.crashWith('tool', list, 5);
    await start();

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    expect(await deployment.reportOf('tools.listed', list.effectId)).toMatchObject({ unavailable: { shop: 'unreachable' } });
    const letters = await deadLetters();
    expect(letters.map(({ id }) => id).sort()).toEqual([item.effectId, list.effectId].sort());
    expect(letters.every(({ source }) => source === 'tool')).toBe(true);
    expect(JSON.parse(letters.find(({ id }) => id === item.effectId)?.body ?? '')).toMatchObject({ type: 'call', toolId: 'shop:a' });
    expect(callsMade()).toBe(0);
  });

  it('reports the reason of the last failure', async () => {
    const item = { ...(await call()), bundleHash: 'unknown' };
    await deployment.effect(item.effectId, 'open');
    await deployment.crashWith('tool', item, 4);
    await start();

    await deployment.reportOf('tool.completed', item.effectId);
    expect(await deadLetters()).toMatchObject([{ id: item.effectId, reason: 'no configuration unknown is stored' }]);
  });

  it('DESIGN 6: an item of a delivery that fails five times is reported as exhausted; its dead letter comes with the owner’s commit', async () => {
    const callback = await delivery();
    await deployment.effect(callback.effectId, 'open');
    await deployment.crashWith('delivery', callback, 5);
    await start();

    expect(await deployment.reportOf('delivery.reported', callback.effectId)).toMatchObject({
      outcome: 'exhausted',
      attempts: 0,
      reason: 'its worker died 5 times',
    });
    expect(await deadLetters()).toEqual([]);
    expect(posts).toEqual([]);
  });
});

describe('a message', () => {
  it.each([
    ['the release before', asFirstVersion],
    ['a later release', asSecondVersion],
  ])('DESIGN 3: an item that a host of %s published is carried out, and its result is one that the release before reads', async (_release, as) => {
    await start();
    const [list, item] = [listItem(bundleHash, ['shop']), await call()];
    for (const work of [list, item]) await bus.work.publish('tool', work.effectId, JSON.stringify(as(work)));

    await deployment.reportOf('tools.listed', list.effectId);
    await deployment.reportOf('tool.completed', item.effectId);
    const read = deployment.bodies.map((body) => firstCommand.parse(JSON.parse(body)));
    expect(read.map(({ type, turnId }) => ({ type, turnId }))).toEqual(
      expect.arrayContaining([
        { type: 'tools.listed', turnId: 'run_1' },
        { type: 'tool.completed', turnId: 'run_1' },
      ]),
    );
  });

  it('DESIGN 3: a message of another version is left for a worker that knows it, and an invalid one is dropped', async () => {
    const [later, strange, next] = [{ ...(await call()), v: TOOL_WORK_VERSION + 1 }, { ...(await call()), actorId: 7 }, await call()];
    await start({}, { concurrency: { tool: 1, delivery: 1 } });
    for (const item of [later, strange, next]) await deployment.publish('tool', item);

    await deployment.reportOf('tool.completed', next.effectId);
    await deployment.gone(strange.effectId);
    const { rows } = await database.query('select 1 as one from bus_work where message_id = $1', [later.effectId]);
    expect(rows).toHaveLength(1);
    expect(deployment.commands).toHaveLength(1);
  });
});

describe('a database that is away', () => {
  it('is waited for, and costs no delivery', async () => {
    let failures = 0;
    const away: Database = {
      query: (statement, parameters) => {
        if (typeof statement !== 'string' && statement.name === 'effect_worker_claim' && failures < 2) {
          failures += 1;
          return Promise.reject(new SwitchyardError('service.unreachable', 'no connection'));
        }
        return database.query(statement, parameters);
      },
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
    await start({ database: away });
    const item = await call();
    await deployment.publish('tool', item);

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result' });
    expect({ failures, calls: callsMade() }).toEqual({ failures: 2, calls: 1 });
    expect(deployment.lines.join()).not.toContain('a work item has failed');
  });
});

describe('stopping', () => {
  it('waits for items in flight', async () => {
    let answer: ServerResponse | undefined;
    onCall = (response) => {
      answer = response;
    };
    const worker = await start();
    const item = await call();
    await deployment.publish('tool', item);
    await vi.waitFor(() => expect(answer).toBeDefined(), WAIT);
    const stopped = worker.stop();
    const id = server.messages('tools/call')[0]?.id;
    answer
      ?.writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'late' }] } }));
    await stopped;

    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'result', data: 'late' });
  });

  it('naks what takes too long, and another worker executes it', async () => {
    onCall = () => undefined;
    const worker = await start({}, { drainTimeoutMs: 50 });
    const item = await call({}, { repeatable: true });
    await deployment.effect(item.effectId, 'open');
    await deployment.publish('tool', item);
    await vi.waitFor(() => expect(callsMade()).toBe(1), WAIT);
    await worker.stop();
    expect(deployment.commands).toEqual([]);

    onCall = () => ({ content: [] });
    await start();
    expect(await deployment.reportOf('tool.completed', item.effectId)).toMatchObject({ sessionId: SESSION, outcome: { type: 'result' } });
  });

  it('executes only its configured kinds', async () => {
    await start({}, { kinds: ['tool'] });
    const [tool, callback] = [await call(), await delivery()];
    await deployment.publish('delivery', callback);
    await deployment.publish('tool', tool);
    await deployment.reportOf('tool.completed', tool.effectId);
    expect(posts).toEqual([]);
    await start({}, { kinds: ['delivery'] });
    expect(await deployment.reportOf('delivery.reported', callback.effectId)).toMatchObject({ outcome: 'delivered' });
  });
});
