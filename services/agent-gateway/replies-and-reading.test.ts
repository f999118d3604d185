import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { Cancellation } from './cancellation.ts';
import { EventFeeds } from './feed/event-feeds.ts';
import { longPoll } from './feed/long-poll.ts';
import { everything, type SessionLog } from './feed/session-log.ts';
import { limits, waits } from './limits.ts';
import { bundleWith } from './test-support/bundle.ts';
import { countedBus } from './test-support/counted-bus.ts';
import { BEARER, newSession, offsetsOf, openTestDeployment, post, read, type TestDeployment } from './test-support/test-deployment.ts';
import { until } from './test-support/until.ts';

/** One test or more for each rule of "Answers and reading without polling". */
let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(() => {
  Object.assign(deployment.owner.silent, { answers: false, notices: false });
  deployment.owner.withoutBodies = false;
  return deployment.closeApps();
});

const HELLO = { kind: 'user_message', text: 'Hello' };
const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;
const lastCommand = () => deployment.owner.commands.at(-1);

it('DESIGN 9: a command names its gateway, which receives all its replies on one subscription', async () => {
  const { bus, listening } = countedBus(deployment.bus);
  const app = deployment.app({ bus });
  const sessionId = await newSession(app);
  const gatewayId = lastCommand()?.answerTo;

  await Promise.all(Array.from({ length: 20 }, () => post(app, sessionId, HELLO)));

  expect(gatewayId).toMatch(/^agw-/);
  expect(new Set(deployment.owner.commands.filter((command) => command.sessionId === sessionId).map(({ answerTo }) => answerTo))).toEqual(new Set([gatewayId]));
  expect(listening(`ans.${gatewayId}`)).toBe(1);
});

it('DESIGN 9: a lost reply is read from the processed commands after a second of silence, for all waiting requests in one statement', async () => {
  const sessionId = await newSession(deployment.app());
  const stored: (() => void)[] = [];
  const append: Bus['commands']['append'] = async (...command) => {
    const index = await deployment.bus.commands.append(...command);
    await new Promise<void>((resolve) => stored.push(resolve));
    return index;
  };
  const app = deployment.app({
    waits: { silenceMs: 100, acceptMs: 60_000, replyMs: 60_000 },
    bus: { ...deployment.bus, commands: { ...deployment.bus.commands, append } },
  });
  deployment.owner.silent.answers = true;
  deployment.queries.length = 0;

  const posting = Array.from({ length: 50 }, () => post(app, sessionId, HELLO));
  await until(() => stored.length === 50, 'all commands in the log');
  // Beside the one that created the session.
  const applied = async () => (await deployment.database.query('select 1 from seen where session_id = $1', [sessionId])).rowCount - 1;
  await until(async () => (await applied()) === 50, 'all commands applied');
  for (const resolve of stored) resolve();

  expect((await Promise.all(posting)).map(({ statusCode }) => statusCode)).toEqual(Array(50).fill(201));
  expect(deployment.queries.filter((name) => name === 'agent-gateway-seen').length).toBeLessThanOrEqual(3);
  expect(waits.silenceMs).toBe(1_000);
});

it('DESIGN 9: a command that the log has already is answered at once from its processed command, and as a repeat', async () => {
  const app = deployment.app({ waits: { silenceMs: 60_000, acceptMs: 60_000 } });
  const sessionId = await newSession(app);
  const first = await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
  deployment.queries.length = 0;

  const repeat = await post(app, sessionId, { ...HELLO, text: 'Other' }, { 'idempotency-key': 'k' });

  expect([first.statusCode, repeat.statusCode]).toEqual([201, 200]);
  expect(repeat.json()).toEqual(first.json());
  expect(deployment.queries[0]).toBe('agent-gateway-seen');
});

it('DESIGN 9: a reply is stored as long as its session exists, and no longer', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  await post(app, sessionId, HELLO, { 'idempotency-key': 'k' });
  expect((await post(app, sessionId, HELLO, { 'idempotency-key': 'k' })).statusCode).toBe(200);

  await app.inject({ method: 'DELETE', url: `/sessions/${sessionId}`, headers: BEARER });

  expect((await post(app, sessionId, HELLO, { 'idempotency-key': 'k' })).statusCode).toBe(404);
});

it('DESIGN 9: 202 is for a customer’s message that has no reply after 5 s; all else waits 10 s and is refused with 503', async () => {
  const app = deployment.app({ waits: { silenceMs: 20, acceptMs: 100, replyMs: 200 } });
  const sessionId = await newSession(app);
  const release = deployment.owner.hold();
  const inFlight = [
    post(app, sessionId, HELLO),
    post(app, sessionId, { kind: 'message', source: 'system', message: 'Hello' }),
    app.inject({ method: 'POST', url: `/sessions/${sessionId}/events?moderation=auto`, headers: BEARER, payload: HELLO }),
    app.inject({ method: 'POST', url: '/sessions', headers: BEARER }),
    app.inject({ method: 'DELETE', url: `/sessions/${sessionId}`, headers: BEARER }),
  ];

  const statuses = (await Promise.all(inFlight)).map(({ statusCode }) => statusCode);
  release();

  expect(statuses).toEqual([202, 503, 503, 503, 503]);
  expect([waits.acceptMs, waits.replyMs]).toEqual([5_000, 10_000]);
});

it('DESIGN 9: posts, new sessions and deletions go one way, and a trigger requests no reply', async () => {
  const app = deployment.app({ bundle: bundleWith({ id: 'triage' }) });
  const sessionId = await newSession(app);
  const sent = () => deployment.owner.commands.filter((command) => command.sessionId === sessionId);
  await post(app, sessionId, HELLO);
  await app.inject({
    method: 'POST',
    url: '/routines/triage/trigger',
    headers: BEARER,
    payload: { callback_url: 'https://example.com/', session_id: sessionId },
  });
  await app.inject({ method: 'DELETE', url: `/sessions/${sessionId}`, headers: BEARER });

  await until(() => sent().length === 4, 'all commands');
  expect(sent().map(({ type, answerTo }) => [type, answerTo !== null])).toEqual([
    ['session.create', true],
    ['message.post', true],
    ['run.start', false],
    ['session.delete', true],
  ]);
});

it('DESIGN 9: readers of a session share one subscription, which ends 60 s after the last of them', async () => {
  const { bus, listening } = countedBus(deployment.bus);
  const app = deployment.app({ bus, waits: { idleFeedMs: 300 } });
  const sessionId = await newSession(app);

  const { begun: waiting } = await deployment.afterPages(5, () => Array.from({ length: 5 }, () => read(app, sessionId, 'wait_for_data=60')));
  expect(listening(`evt.${sessionId}`)).toBe(1);
  await deployment.owner.append(sessionId, SAY('a'));
  await Promise.all(waiting);

  expect(listening(`evt.${sessionId}`)).toBe(1);
  await until(() => listening(`evt.${sessionId}`) === 0, 'the end of the subscription');
  expect(waits.idleFeedMs).toBe(60_000);
});

it('DESIGN 9: a poll reads the log once, and not at all when the open subscription knows its head', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  const { begun: first } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
  await deployment.owner.append(sessionId, SAY('a'));
  expect(offsetsOf(await first)).toEqual([0]);
  expect(deployment.queries).toEqual(['agent-gateway-page']);

  const second = read(app, sessionId, 'wait_for_data=60&min_offset=1');
  await deployment.owner.append(sessionId, SAY('b'));

  expect(offsetsOf(await second)).toEqual([1]);
  expect(deployment.queries).toEqual(['agent-gateway-page']);
});

it('DESIGN 9: events that were read and events of notices are spliced without a gap and without a repeat', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  const wanted = 60;
  const writing = (async () => {
    for (let n = 0; n < wanted; n += 1) await deployment.owner.append(sessionId, SAY(`${n}`));
  })();
  const offsets: number[] = [];
  while (offsets.length < wanted) offsets.push(...offsetsOf(await read(app, sessionId, `wait_for_data=60&min_offset=${offsets.length}`)));
  await writing;

  expect(offsets).toEqual(Array.from({ length: wanted }, (_, n) => n));
});

/** A bus whose broker has a subscription to notices of a session once its entry of `arrived` was called. */
function slowToSubscribe(arrived: (() => void)[]): Bus {
  return {
    ...deployment.bus,
    notices: {
      publish: (subject, body) => deployment.bus.notices.publish(subject, body),
      subscribe: (pattern, handler) => {
        const listening = deployment.bus.notices.subscribe(pattern, handler);
        return pattern.startsWith('evt.') ? { stop: () => listening.stop(), ready: () => new Promise((resolve) => arrived.push(resolve)) } : listening;
      },
    },
  };
}

it('DESIGN 9: the log is read once the subscription exists, and not before', async () => {
  const arrived: (() => void)[] = [];
  const app = deployment.app({ bus: slowToSubscribe(arrived), waits: { subscribedMs: 60_000 } });
  const sessionId = await newSession(app);
  deployment.queries.length = 0;
  const waiting = read(app, sessionId, 'wait_for_data=60');
  await until(() => arrived.length === 1, 'the subscription');
  deployment.owner.silent.notices = true;
  await deployment.owner.append(sessionId, SAY('before the subscription was there'));
  expect(deployment.queries).toEqual([]);

  for (const resolve of arrived) resolve();

  expect(offsetsOf(await waiting)).toEqual([0]);
});

it('DESIGN 9: events between the first read of a log and a subscription that the broker has late are found within seconds', async () => {
  const arrived: (() => void)[] = [];
  const app = deployment.app({ bus: slowToSubscribe(arrived), waits: { subscribedMs: 1, checkBegunFeedsMs: 20, checkFeedsMs: 3_600_000 } });
  const sessionId = await newSession(app);
  const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
  await until(() => deployment.queries.includes('agent-gateway-heads'), 'the comparison of a feed that has begun');
  deployment.owner.silent.notices = true;
  await deployment.owner.append(sessionId, SAY('before the subscription was there'));

  for (const resolve of arrived) resolve();

  expect(offsetsOf(await waiting)).toEqual([0]);
});

it('DESIGN 9: events between the first read of a log and the subscription at the other servers of a cluster are found within seconds', async () => {
  const app = deployment.app({ waits: { checkBegunFeedsMs: 1_000, checkFeedsMs: 3_600_000 } });
  const sessionId = await newSession(app);
  deployment.owner.silent.notices = true;
  const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));

  await deployment.owner.append(sessionId, SAY('before the subscription was there'));

  expect(offsetsOf(await waiting)).toEqual([0]);
});

it('DESIGN 9: a notice without events is followed by one read of the log', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  deployment.owner.withoutBodies = true;
  const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));

  await deployment.owner.append(sessionId, SAY('x'.repeat(40_000)));

  expect(offsetsOf(await waiting)).toEqual([0]);
  expect(deployment.queries).toEqual(['agent-gateway-page', 'agent-gateway-page-events']);
});

it('DESIGN 9: lost notices are recovered by part.<p>, by a reconnect, and by a periodic query for all open sessions', async () => {
  let reconnect = () => {};
  const bus: Bus = {
    ...deployment.bus,
    onReconnect: (handler) => {
      reconnect = handler;
      return { stop: async () => {} };
    },
  };
  const heals: [Parameters<TestDeployment['app']>[0], (sessionId: string) => void][] = [
    [{}, (sessionId) => deployment.owner.announceOwnerChange(sessionId)],
    [{ bus }, () => reconnect()],
    [{ waits: { checkFeedsMs: 200 } }, () => {}],
  ];
  for (const [changes, heal] of heals) {
    const app = deployment.app(changes);
    const sessions = await Promise.all(Array.from({ length: 5 }, () => newSession(app)));
    const { begun: waiting } = await deployment.afterPages(5, () => sessions.map((sessionId) => read(app, sessionId, 'wait_for_data=60')));
    deployment.owner.silent.notices = true;
    for (const sessionId of sessions) await deployment.owner.append(sessionId, SAY('lost'));
    deployment.queries.length = 0;

    for (const sessionId of sessions) heal(sessionId);

    for (const reply of await Promise.all(waiting)) expect(offsetsOf(reply)).toEqual([0]);
    expect(deployment.queries.filter((name) => name === 'agent-gateway-heads')).toHaveLength(1);
    deployment.owner.silent.notices = false;
    await deployment.closeApps();
  }
  expect(waits).toMatchObject({ checkFeedsMs: 30_000, checkBegunFeedsMs: 2_000 });
});

it('DESIGN 9: 10,000 idle long-polls cost no queries', async () => {
  let queries = 0;
  const page = { pieces: [], count: 0, head: 0, next: 0 };
  const sessionLog = {
    readText: async () => {
      queries += 1;
      return page;
    },
    heads: async () => {
      queries += 1;
      return new Map();
    },
  } as unknown as SessionLog;
  const feeds = new EventFeeds({ bus: deployment.bus, sessionLog, waits: { ...waits, checkBegunFeedsMs: 3_600_000 }, log: silentLog });
  feeds.open();
  const sessions = Array.from({ length: 10_000 }, (_, n) => `ses_idle_${n}`);
  const pollAll = async () => {
    const waiting = sessions.map((sessionId) => ({ sessionId, ending: new Cancellation() }));
    const query = { filter: everything, minOffset: 0, limit: 200, waitMs: 60_000 };
    const polls = waiting.map(({ sessionId, ending }) => longPoll({ feeds, sessionLog }, sessionId, query, ending));
    await new Promise((resolve) => setImmediate(resolve));
    return async () => {
      for (const { ending } of waiting) ending.cancel();
      await Promise.all(polls);
    };
  };

  const end = await pollAll();
  expect(queries).toBe(10_000); // the first poll of each, with a new feed
  await end();
  for (let round = 0; round < 3; round += 1) await (await pollAll())();

  expect(queries).toBe(10_000);
  expect(limits.idleFeeds).toBeGreaterThanOrEqual(10_000);
  await feeds.close();
});
