import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { type GuardedPoster, openGuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { EffectWorkerConfig } from '../service.ts';
import { freePort, type HttpDouble, openHttpDouble } from '../test-support/http-double.ts';
import { AGENT_KEY, deliveryItem, WAIT, WorkerDeployment } from '../test-support/worker-deployment.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let bundleHash: string;
let receiver: HttpDouble;
/** The receiver's response. */
let answer: { status: number; headers?: Record<string, string> } | 'silence';
const posters: GuardedPoster[] = [];

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  bundleHash = await deployment.bundle();
  answer = { status: 204 };
  receiver = await openHttpDouble((_, response) => {
    if (answer !== 'silence') response.writeHead(answer.status, answer.headers).end();
  });
});
afterEach(async () => {
  await receiver.close();
  await deployment.close();
  await Promise.all(posters.splice(0).map((poster) => poster.close()));
  await bus.close();
});

const urlOf = (port: number) => `http://127.0.0.1:${port}/callback?run=1`;

async function start(config: Partial<EffectWorkerConfig> = {}, allowed = receiver.port): Promise<void> {
  const poster = openGuardedPoster({ rules: { allowHosts: new Set([`127.0.0.1:${allowed}`]) } });
  posters.push(poster);
  await deployment.start({ kinds: ['delivery'], ...config }, { poster });
}

describe('an attempt that fails', () => {
  it('is reported with the receiver’s status, and nothing of its body', async () => {
    answer = { status: 503 };
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({
      commandId: item.effectId,
      callId: item.effectId,
      deliveryId: item.deliveryId,
      outcome: 'failed',
      attempts: 1,
      reason: 'the receiver answered 503',
      retryAfterMs: null,
    });
    await deployment.gone(item.effectId);
  });

  it.each([
    ['7', 7_000],
    ['86400', 60_000],
  ])('passes the wish for a pause on, up to a minute: Retry-After %s', async (header, retryAfterMs) => {
    answer = { status: 429, headers: { 'retry-after': header } };
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'failed', retryAfterMs });
  });

  it('is a redirect, which is not followed', async () => {
    answer = { status: 307, headers: { location: urlOf(receiver.port) } };
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'failed', reason: 'the receiver answered 307' });
    expect(receiver.received).toHaveLength(1);
  });

  it('is a receiver that is unreachable, or does not respond in time', async () => {
    await start({ timeouts: { deliveryMs: 50 } });
    answer = 'silence';
    const silent = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    await deployment.publish('delivery', silent);
    expect(await deployment.reportOf('delivery.reported', silent.effectId)).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('timeout') });

    const closedUrl = await freePort();
    await deployment.stopWorkers();
    await start({}, closedUrl);
    const missing = deliveryItem(await deployment.delivery({ url: urlOf(closedUrl), bundleHash }));
    await deployment.publish('delivery', missing);
    expect(await deployment.reportOf('delivery.reported', missing.effectId)).toMatchObject({
      outcome: 'failed',
      reason: expect.stringContaining('not_connected'),
    });
  });

  it('DESIGN 11: an attempt at a refused address counts like any other', async () => {
    await start({}, 1);
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({
      outcome: 'failed',
      attempts: 1,
      reason: expect.stringContaining('refused'),
    });
    expect(receiver.received).toEqual([]);
  });

  it('at an invalid address counts like any other', async () => {
    await start();
    const item = deliveryItem(await deployment.delivery({ url: 'nowhere', bundleHash }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'failed', attempts: 1 });
  });

  it('is the last one when the limit is reached', async () => {
    answer = { status: 500 };
    await start({ maxDeliveryAttempts: 3 });
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash, attempts: 2 }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({
      outcome: 'exhausted',
      attempts: 3,
      reason: 'the receiver answered 500',
    });
  });
});

describe('a delivery', () => {
  it('DESIGN 11: a delivery posts the stored bytes unchanged, with the agent’s key, which its worker resolves, the run and the attempt', async () => {
    const body = '{"run_id": "run_1",  "text":"h\u00e9llo \u{1f600}"}';
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash, body, attempts: 1, traceparent }));
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'delivered', attempts: 2, reason: null });
    const [post] = receiver.received;
    expect(post?.body).toEqual(Buffer.from(body, 'utf8'));
    expect(post).toMatchObject({ method: 'POST', url: '/callback?run=1' });
    expect(post?.headers).toMatchObject({
      authorization: `Bearer ${AGENT_KEY}`,
      'content-type': 'application/json',
      'x-run-id': 'run_1',
      'x-switchyard-attempt': '2',
      traceparent,
    });
    expect(deployment.lines.join()).not.toContain(AGENT_KEY);
  });

  it('is counted in its row before the request', async () => {
    let counted: number | undefined;
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }));
    const post = async () => {
      counted = await deployment.attemptsOf(item.deliveryId);
      return { status: 200, retryAfterMs: null };
    };
    await deployment.start({ kinds: ['delivery'] }, { poster: { post } });
    await deployment.publish('delivery', item);

    await deployment.reportOf('delivery.reported', item.effectId);
    expect(counted).toBe(1);
  });

  it.each(['delivered', 'dead'])('that is already %s is not posted again, and its round ends', async (state) => {
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash, attempts: 1, state }));
    await deployment.publish('delivery', item);

    const outcome = state === 'dead' ? 'exhausted' : 'delivered';
    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome, attempts: 1 });
    await deployment.gone(item.effectId);
    expect(receiver.received).toEqual([]);
    expect(await deployment.attemptsOf(item.deliveryId)).toBe(1);
  });

  it('is posted without a row of its effect, as when an operator replays it', async () => {
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash }), { republished: true });
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'delivered' });
  });

  it('ends as exhausted for an unknown delivery', async () => {
    await start();
    const item = deliveryItem('dlv-none');
    await deployment.publish('delivery', item);

    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'exhausted', reason: 'there is no such delivery' });
  });
});

describe('the agent’s key', () => {
  it('stops the start, named, when it is not set', async () => {
    await expect(deployment.start({ kinds: ['delivery'] }, { environment: {} })).rejects.toMatchObject({
      code: 'config.invalid',
      message: expect.stringContaining('AGENT_API_KEY'),
    });
  });

  it('is not required by a worker that posts nothing', async () => {
    await expect(deployment.start({ kinds: ['tool'] }, { environment: {} })).resolves.toBeDefined();
  });

  it('costs no attempt when its configuration can not be read', async () => {
    await start();
    const item = deliveryItem(await deployment.delivery({ url: urlOf(receiver.port), bundleHash: 'unknown' }));
    await deployment.publish('delivery', item);

    await vi.waitFor(() => expect(deployment.lines.join()).toContain('a work item has failed'), WAIT);
    expect(await deployment.attemptsOf(item.deliveryId)).toBe(0);
  });
});
