import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { EventWork } from '#bus/messages/event-delivery.ts';
import { systemClock } from '#shared/clock.ts';
import { type GuardedPoster, openGuardedPoster } from '#shared/http/guarded-post.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { EffectWorkerConfig } from '../service.ts';
import { type HttpDouble, openHttpDouble } from '../test-support/http-double.ts';
import { AGENT_KEY, SESSION, WorkerDeployment } from '../test-support/worker-deployment.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let bundleHash: string;
let receiver: HttpDouble;
let poster: GuardedPoster;
/** Answers the request that got no response at first. */
let answer: (() => void) | null = null;
/** The receiver's response, by offset; null: none yet. */
let answerTo: (offset: number) => { status: number; headers?: Record<string, string> } | null;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  bundleHash = await deployment.bundle();
  answerTo = () => ({ status: 204 });
  receiver = await openHttpDouble(({ body }, response) => {
    const answered = answerTo((JSON.parse(body.toString('utf8')) as { offset: number }).offset);
    if (answered === null) answer = () => response.writeHead(204).end();
    else response.writeHead(answered.status, answered.headers).end();
  });
  await database.query('delete from events');
});
afterEach(async () => {
  await receiver.close();
  await deployment.close();
  await poster.close();
  await bus.close();
});

async function start(config: Partial<EffectWorkerConfig> = {}, allowed = receiver.port, clock = systemClock, intervalClock = clock): Promise<void> {
  poster = openGuardedPoster({ rules: { allowHosts: new Set([`127.0.0.1:${allowed}`]) } });
  await deployment.start({ kinds: ['delivery'], ...config }, { poster, clock, intervalClock });
}

/** Stores events with the given texts, from offset 0. */
async function log(...events: { kind?: string; text?: string }[]): Promise<string[]> {
  const bodies = events.map(({ kind = 'user_message', text = 'hello' }, offset) => `{"kind":"${kind}","offset":${offset},"text":${JSON.stringify(text)}}`);
  for (const [offset, body] of bodies.entries())
    await database.query(
      `insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ($1, $2, $3, $4, 'customer', 't', $5::json, now())`,
      [SESSION, offset, `evt_${offset}`, events[offset]?.kind ?? 'user_message', body],
    );
  return bodies;
}

function round(fields: Partial<EventWork> = {}): EventWork {
  const nowMs = systemClock.nowMs();
  return {
    ...{ v: 2, type: 'events', effectId: `evw_${ulid()}`, sessionId: SESSION, bundleHash, url: `http://127.0.0.1:${receiver.port}/events?key=1` },
    ...{ kinds: null, fromOffset: 0, toOffset: 100, attempts: 0, waitingSinceMs: null },
    ...{ deadlineAtMs: nowMs + 30_000, createdAtMs: nowMs, republished: false, traceparent: null },
    ...fields,
  };
}

async function reportOf(work: EventWork) {
  await deployment.publish('delivery', work);
  return deployment.reportOf('event-webhook.reported', work.effectId);
}

const offsetsReceived = () => receiver.received.map(({ body }) => (JSON.parse(body.toString('utf8')) as { offset: number }).offset);

describe('a round of an event webhook', () => {
  it('DESIGN 5: posts each event by a request of its own, in order, as it was written', async () => {
    await start();
    const bodies = await log({ text: 'a\u0000\ud800 "b" ✓' }, { kind: 'status' }, {});
    const report = await reportOf(round({ toOffset: 3, traceparent: '00-11111111111111111111111111111111-2222222222222222-01' }));

    expect(report).toMatchObject({ outcome: 'posted', nextOffset: 3, reason: null, retryAfterMs: null });
    expect(receiver.received.map(({ body }) => body.toString('utf8'))).toEqual(bodies);
    expect(receiver.received[0]).toMatchObject({ method: 'POST', url: '/events?key=1' });
    expect(receiver.received[0]?.headers).toMatchObject({
      authorization: `Bearer ${AGENT_KEY}`,
      'content-type': 'application/json',
      'x-session-id': SESSION,
      'x-switchyard-attempt': '1',
      traceparent: '00-11111111111111111111111111111111-2222222222222222-01',
    });
  });

  it('DESIGN 5: posts no event that was deleted more than a second before, though it was read with those before it', async () => {
    let aheadMs = 0;
    answerTo = (offset) => {
      if (offset !== 0) return { status: 204 };
      // The answer to the first takes its time.
      aheadMs = 1_500;
      void database.query('update events set deleted_at = now() where off = 1').then(() => answer?.());
      return null;
    };
    await start({}, receiver.port, { nowMs: () => systemClock.nowMs() + aheadMs });
    await log({}, {}, {});
    const report = await reportOf(round({ toOffset: 3 }));

    expect(report).toMatchObject({ outcome: 'posted', nextOffset: 3 });
    expect(offsetsReceived()).toEqual([0, 2]);
  });

  it('posts no event that was deleted meanwhile, though the clock is set back by an hour', async () => {
    let [aheadMs, setBackMs] = [0, 0];
    answerTo = (offset) => {
      if (offset !== 0) return { status: 204 };
      [aheadMs, setBackMs] = [1_500, 3_600_000];
      void database.query('update events set deleted_at = now() where off = 1').then(() => answer?.());
      return null;
    };
    const intervalClock = { nowMs: () => systemClock.nowMs() + aheadMs };
    await start({}, receiver.port, { nowMs: () => systemClock.nowMs() - setBackMs }, intervalClock);
    await log({}, {}, {});

    expect(await reportOf(round({ toOffset: 3 }))).toMatchObject({ outcome: 'posted', nextOffset: 3 });
    expect(offsetsReceived()).toEqual([0, 2]);
  });

  it('leaves out events of other kinds, deleted ones, and those behind its interval', async () => {
    await start();
    await log({}, { kind: 'status' }, {}, {}, {});
    await database.query('update events set deleted_at = now() where off = 2');
    const report = await reportOf(round({ kinds: ['user_message'], fromOffset: 0, toOffset: 4 }));

    expect(report).toMatchObject({ outcome: 'posted', nextOffset: 4 });
    expect(offsetsReceived()).toEqual([0, 3]);
  });

  it('ends at the first event that is not taken, and names it', async () => {
    await start();
    await log({}, {}, {});
    answerTo = (offset) => (offset === 1 ? { status: 503, headers: { 'retry-after': '7' } } : { status: 200 });

    expect(await reportOf(round({ toOffset: 3 }))).toMatchObject({
      outcome: 'failed',
      nextOffset: 1,
      reason: 'the receiver answered 503',
      retryAfterMs: 7_000,
    });
    expect(offsetsReceived()).toEqual([0, 1]);
  });

  it('numbers the attempts of its first event', async () => {
    await start();
    await log({}, {});
    await reportOf(round({ toOffset: 2, attempts: 2 }));

    expect(receiver.received.map(({ headers }) => headers['x-switchyard-attempt'])).toEqual(['3', '1']);
  });

  it('begins the next event after the response to the one before', async () => {
    await start();
    await log({}, {}, {});
    let open = 0;
    let most = 0;
    await receiver.close();
    receiver = await openHttpDouble((_, response) => {
      open += 1;
      most = Math.max(most, open);
      setImmediate(() => {
        open -= 1;
        response.writeHead(200).end();
      });
    });
    await poster.close();
    await deployment.stopWorkers();
    await start();
    await reportOf(round({ toOffset: 3 }));

    expect(most).toBe(1);
    expect(receiver.received).toHaveLength(3);
  });

  it('posts more events than one query reads', async () => {
    await start();
    await log(...Array.from({ length: 40 }, () => ({})));
    expect(await reportOf(round({ toOffset: 40 }))).toMatchObject({ outcome: 'posted', nextOffset: 40 });
    expect(offsetsReceived()).toEqual(Array.from({ length: 40 }, (_, offset) => offset));
  });

  it('posts events that are larger than a query reads at once', async () => {
    await start();
    await log({ text: 'x'.repeat(300_000) }, { text: 'y'.repeat(300_000) });
    expect(await reportOf(round({ toOffset: 2 }))).toMatchObject({ outcome: 'posted', nextOffset: 2 });
    expect(offsetsReceived()).toEqual([0, 1]);
  });

  it('an address that is refused is a failed attempt', async () => {
    await start({}, 1);
    await log({});
    expect(await reportOf(round({ toOffset: 1 }))).toMatchObject({ outcome: 'failed', nextOffset: 0, reason: expect.stringContaining('refused') });
    expect(receiver.received).toEqual([]);
  });

  it('does not follow a redirect', async () => {
    await start();
    await log({});
    answerTo = () => ({ status: 307, headers: { location: `http://127.0.0.1:${receiver.port}/elsewhere` } });
    expect(await reportOf(round({ toOffset: 1 }))).toMatchObject({ outcome: 'failed', reason: 'the receiver answered 307' });
    expect(receiver.received).toHaveLength(1);
  });

  it('waits without an attempt while its receiver does not answer, unless the event has waited for long', async () => {
    await start({ timeouts: { deliveryMs: 50 } });
    await log({});
    answerTo = () => null;
    for (let silent = 0; silent < 5; silent += 1) expect(await reportOf(round({ toOffset: 1 }))).toMatchObject({ outcome: 'failed' });

    const postponed = await reportOf(round({ toOffset: 1 }));
    expect(postponed).toMatchObject({ outcome: 'postponed', nextOffset: 0 });
    expect(postponed.retryAfterMs).toBeGreaterThan(0);
    expect(await reportOf(round({ toOffset: 1, waitingSinceMs: systemClock.nowMs() - 700_000 }))).toMatchObject({ outcome: 'failed' });
    expect(receiver.received).toHaveLength(6);
  });

  it('that killed its workers counts as an attempt for its first event', async () => {
    await log({});
    const work = round({ toOffset: 1 });
    await deployment.effect(work.effectId, 'open');
    await deployment.crashWith('delivery', work, 5);
    await start();

    expect(await deployment.reportOf('event-webhook.reported', work.effectId)).toMatchObject({ outcome: 'failed', nextOffset: 0 });
    expect(receiver.received).toEqual([]);
  });

  it.each(['done', 'superseded'] as const)('that is redelivered is dropped when its effect is %s', async (state) => {
    await log({});
    const work = round({ toOffset: 1 });
    await deployment.effect(work.effectId, state);
    await deployment.crashWith('delivery', work);
    await start();
    await deployment.gone(work.effectId);

    expect(receiver.received).toEqual([]);
  });

  it('writes neither key nor path of the address into its log', async () => {
    await start();
    await log({});
    answerTo = () => ({ status: 500 });
    await reportOf(round({ toOffset: 1 }));

    expect(deployment.lines.join('')).not.toContain(AGENT_KEY);
    expect(deployment.lines.join('')).not.toContain('key=1');
  });
});
