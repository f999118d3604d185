import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { systemClock } from '#shared/clock.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { waits } from '../limits.ts';
import { countedBus } from '../test-support/counted-bus.ts';
import { newSession, offsetsOf, openTestDeployment, read, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';
import { EventFeeds } from './event-feeds.ts';
import { SessionLog } from './session-log.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(() => {
  deployment.owner.silent.notices = false;
  deployment.owner.withoutBodies = false;
  return deployment.closeApps();
});

const SAY = (text: string) => ({ kind: 'assistant_message', text }) as const;

describe('lost notices', () => {
  it('are recovered by the next one', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
    deployment.owner.silent.notices = true;
    await deployment.owner.append(sessionId, SAY('lost'));
    deployment.owner.silent.notices = false;

    await deployment.owner.append(sessionId, SAY('received'));

    expect(offsetsOf(await waiting)).toEqual([0, 1]);
  });

  it('are recovered when another host acquires the partition', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
    deployment.owner.silent.notices = true;
    await deployment.owner.append(sessionId, SAY('lost'));

    deployment.owner.announceOwnerChange(sessionId);

    expect(offsetsOf(await waiting)).toEqual([0]);
  });

  it('are recovered by a periodic comparison', async () => {
    const app = deployment.app({ waits: { checkFeedsMs: 20 } });
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
    deployment.owner.silent.notices = true;

    await deployment.owner.append(sessionId, SAY('lost'));

    expect(offsetsOf(await waiting)).toEqual([0]);
  });

  it.each(['wait_for_data=60', 'wait_for_data=0'])('are recovered when another reader of the session reads more, with %s', async (query) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await deployment.owner.append(sessionId, SAY('received'));
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60&min_offset=1'));
    deployment.owner.silent.notices = true;
    await deployment.owner.append(sessionId, SAY('lost'));

    expect(offsetsOf(await read(app, sessionId, `${query}&min_offset=0`))).toEqual([0, 1]);

    expect(offsetsOf(await waiting)).toEqual([1]);
  });

  it('cost one query for many sessions when many partitions change owners', async () => {
    const app = deployment.app();
    const sessions: string[] = [];
    for (let n = 0; n < 20; n += 1) sessions.push(await newSession(app));
    const { begun: waiting } = await deployment.afterPages(sessions.length, () => sessions.map((sessionId) => read(app, sessionId, 'wait_for_data=60')));
    deployment.queries.length = 0;

    for (const sessionId of sessions) deployment.owner.announceOwnerChange(sessionId);
    await until(() => deployment.queries.length > 0, 'the comparison');
    for (const sessionId of sessions) await deployment.owner.append(sessionId, SAY('Hello'));
    await Promise.all(waiting);

    expect(deployment.queries).toEqual(['agent-gateway-heads']);
  });
});

describe('the queries of polls', () => {
  it('are at most one each while they wait, however many, and none without events', async () => {
    const app = deployment.app();
    const sessions: string[] = [];
    for (let n = 0; n < 50; n += 1) sessions.push(await newSession(app));
    const { begun: waiting } = await deployment.afterPages(500, () =>
      sessions.flatMap((sessionId) => Array.from({ length: 10 }, () => read(app, sessionId, 'wait_for_data=60'))),
    );
    deployment.queries.length = 0;

    for (const sessionId of sessions) await deployment.owner.append(sessionId, SAY('Hello'));
    const replies = await Promise.all(waiting);

    expect(replies.every((reply) => reply.statusCode === 200)).toBe(true);
    expect(deployment.queries).toEqual([]);
  });

  it('are none for a poll that follows the one before', async () => {
    const { bus, listening } = countedBus(deployment.bus);
    const app = deployment.app({ bus });
    const sessionId = await newSession(app);
    await deployment.owner.append(sessionId, SAY('a'));
    await read(app, sessionId, 'wait_for_data=60');
    deployment.queries.length = 0;

    const waiting = read(app, sessionId, 'wait_for_data=60&min_offset=1');
    await deployment.owner.append(sessionId, SAY('b'));

    expect(offsetsOf(await waiting)).toEqual([1]);
    expect(deployment.queries).toEqual([]);
    expect(listening(`evt.${sessionId}`)).toBe(1);
  });

  it.each([
    { what: 'none for a poll for recent events', text: 'short', queries: [] },
    { what: 'one when the events were too large for the cache', text: 'x'.repeat(5_000), queries: ['agent-gateway-page'] },
  ])('is $what', async ({ text, queries }) => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await read(app, sessionId, 'wait_for_data=0.001'); // the feed stays
    const received = new Promise((resolve) => deployment.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), resolve));
    await deployment.owner.append(sessionId, SAY(text), SAY('b'), SAY('c'));
    await received;
    deployment.queries.length = 0;

    expect(offsetsOf(await read(app, sessionId, 'wait_for_data=60&min_offset=0&kinds=status,assistant_message&limit=2'))).toEqual([0, 1]);
    expect(deployment.queries).toEqual(queries);
  });

  it('include no subscription any more some time after the last reader', async () => {
    const { bus, listening } = countedBus(deployment.bus);
    const app = deployment.app({ bus, waits: { idleFeedMs: 20 } });
    const sessionId = await newSession(app);

    await read(app, sessionId, 'wait_for_data=0.001');

    await until(() => listening(`evt.${sessionId}`) === 0, 'the end of the subscription');
  });

  it('include no subscription for a poll that does not wait', async () => {
    const { bus, listening } = countedBus(deployment.bus);
    const app = deployment.app({ bus });
    const sessionId = await newSession(app);

    await read(app, sessionId, 'wait_for_data=0');

    expect(listening(`evt.${sessionId}`)).toBe(0);
  });
});

describe('a log that is shorter than its notices', () => {
  /** A notice from before the database was restored to an earlier state. */
  const overstate = (sessionId: string, last: number) =>
    deployment.bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify({ v: 1, first: last, last, events: null }));

  it('is read twice by a poll that waits, which gets the next event', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    await read(app, sessionId, 'wait_for_data=0.001'); // the feed stays and trusts notices
    const received = new Promise((resolve) => deployment.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), resolve));
    overstate(sessionId, 7);
    await received;
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));

    await deployment.owner.append(sessionId, SAY('a'));

    expect(offsetsOf(await waiting)).toEqual([0]);
    expect(deployment.queries.length).toBeLessThan(3);
  });

  it('is detected by the comparison, so that a poll at its end misses nothing', async () => {
    const app = deployment.app({ waits: { checkFeedsMs: 20 } });
    const sessionId = await newSession(app);
    await read(app, sessionId, 'wait_for_data=0.001');
    const received = new Promise((resolve) => deployment.bus.notices.subscribe(subjectOf(addresses.notices, sessionId), resolve));
    overstate(sessionId, 7);
    await received;
    deployment.queries.length = 0;
    await until(() => deployment.queries.includes('agent-gateway-heads'), 'the comparison');
    const waiting = read(app, sessionId, 'wait_for_data=60&min_offset=0');

    await deployment.owner.append(sessionId, SAY('a'));

    expect(offsetsOf(await waiting)).toEqual([0]);
  });

  it('is not read repeatedly for a stream, which gets the next event', async () => {
    const app = deployment.app();
    const sessionId = await newSession(app);
    const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
    await deployment.afterPages(1, () => overstate(sessionId, 7));

    for (let n = 0; n < 20; n += 1) await deployment.database.query('select 1'); // one connection: further reads interleave with these
    expect(deployment.queries).toEqual(['agent-gateway-page-events']);
    await deployment.owner.append(sessionId, SAY('a'));

    expect(offsetsOf(await waiting)).toEqual([0]);
  });
});

it('ignores invalid notices', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  const { begun: waiting } = await deployment.afterPages(1, () => read(app, sessionId, 'wait_for_data=60'));
  const say = (body: string) => deployment.bus.notices.publish(subjectOf(addresses.notices, sessionId), body);

  for (const body of ['', 'null', '{}', '{"v":2,"first":0,"last":0,"events":[]}', '{"v":1,"first":-1,"last":0,"events":null}']) say(body);
  say(JSON.stringify({ v: 1, first: 0, last: 0, events: ['not an event'] }));
  await deployment.owner.append(sessionId, SAY('a'));

  expect(offsetsOf(await waiting)).toEqual([0]);
});

it('delivers repeated, late and incomplete notices once and in order', async () => {
  const app = deployment.app();
  const sessionId = await newSession(app);
  deployment.owner.silent.notices = true;
  const stored = [
    ...(await deployment.owner.append(sessionId, SAY('0'), SAY('1'))),
    ...(await deployment.owner.append(sessionId, SAY('2'), SAY('3'), SAY('4'))),
  ];
  const texts = stored.map((event) => JSON.stringify(event));
  const seen: number[] = [];
  const feeds = new EventFeeds({
    bus: deployment.bus,
    sessionLog: new SessionLog(deployment.database),
    waits: { ...waits, checkBegunFeedsMs: 3_600_000 },
    log: silentLog,
  });
  const reader = feeds.read(sessionId);
  reader.noteHead(0, null);
  reader.subscribe({ onEvents: (events) => seen.push(...events.map(({ offset }) => offset)), onDeleted: () => {} });
  const say = (first: number, last: number) =>
    deployment.bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify({ v: 1, first, last, events: texts.slice(first, last + 1) }));

  say(0, 1);
  say(0, 1);
  say(4, 4); // 2 and 3 are unknown: they are read together with this
  say(1, 3);
  say(2, 4);

  await until(() => seen.length >= 5, 'all events');
  await until(() => reader.head === 5, 'the head');
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  reader.release();
  await feeds.close();
});
