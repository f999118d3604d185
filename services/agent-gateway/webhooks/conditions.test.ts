import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Cache } from '#shared/storage/cache.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleOf } from '../test-support/bundle.ts';
import { ModelWorker } from '../test-support/model-worker.ts';
import { deliver, WEBHOOK_SECRET } from '../test-support/signed.ts';
import { openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

let deployment: TestDeployment;
let worker: ModelWorker;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
beforeEach(() => {
  worker = new ModelWorker(deployment.bus);
});
afterEach(async () => {
  await worker.stop();
  await deployment.closeApps();
  await deployment.database.query('delete from runs');
  await deployment.database.query('delete from webhook_deliveries');
});

const WEBHOOKS = [
  { name: 'tickets', secret_env: '$' + '{S}', header: 'x-hub-signature-256', prefix: 'sha256=', routines: ['fault', 'every', 'money', 'opened-money'] },
];
const ROUTINES = [
  { id: 'every' },
  { id: 'fault', title: 'Faults', conditions: ['a fault is reported'] },
  { id: 'money', conditions: ['it is about money'] },
  { id: 'opened-money', conditions: ['it is about money'], autonomous: { match: { action: 'opened' } } },
];
const SECRET_REF = '$' + '{SECRET}';
const EVENT = { action: 'closed', text: 'The lamp is broken.' };
/** Long enough for the gateway to find it held. */
const LEASE_OF_THE_DEAD_MS = 1_000;
const FAULT = '{"routine_1":true,"routine_2":false}';

function app(changes: Parameters<TestDeployment['app']>[0] = {}, llms: object = { evaluation: 'a/judge', evaluation_fallback: 'b/judge' }) {
  const bundle = bundleOf({ webhooks: WEBHOOKS, llms: { default: 'a/chat', api_key: SECRET_REF, ...llms } }, ...ROUTINES);
  return deployment.app({ bundle, secretNow: () => WEBHOOK_SECRET, ...changes });
}

async function stored(): Promise<number[]> {
  const counted = await deployment.database.query<{ runs: number; deliveries: number }>(
    'select (select count(*) from runs)::int as runs, (select count(*) from webhook_deliveries)::int as deliveries',
  );
  return counted.rows.flatMap(({ runs, deliveries }) => [deliveries, runs]);
}

/** Frames are lost on their way; stored ones are not. */
function losingFrames(): Bus {
  const { bus } = deployment;
  return { ...busOf(bus), tokens: { ...tokensOf(bus), subscribe: () => ({ ready: () => Promise.resolve(), stop: () => Promise.resolve() }) } };
}

function busOf(bus: Bus): Bus {
  const { commands, work, notices, tokens, blobs, usage } = bus;
  return {
    ...{ commands, work, notices, tokens, blobs, usage },
    isReady: () => bus.isReady(),
    connectionNumber: () => bus.connectionNumber(),
    flush: () => bus.flush(),
    hasCapacity: (kind) => bus.hasCapacity(kind),
    onReconnect: (handler) => bus.onReconnect(handler),
    close: () => bus.close(),
  };
}

function tokensOf({ tokens }: Bus): Bus['tokens'] {
  return {
    publish: (...frame) => tokens.publish(...frame),
    subscribe: (...args) => tokens.subscribe(...args),
    replay: (...args) => tokens.replay(...args),
  };
}

describe('routines with conditions', () => {
  it('start when a model finds that one of theirs holds, asked once for all that the fields leave', async () => {
    worker.replies = [FAULT];

    const reply = await deliver(app(), 'tickets', EVENT);

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toMatchObject({ matched: ['fault', 'every'], runs: [{ routine_id: 'fault' }, { routine_id: 'every' }] });
    expect(worker.calls).toHaveLength(1);
    const [call] = worker.calls;
    expect(call).toMatchObject({ want: 'body', surface: 'parts', detached: true, keyId: 'sha256:none', maxTokens: 1_000, reply: null });
    expect(call?.request).toMatchObject({ model: 'a/judge', response_format: { type: 'json_schema' } });
    expect(JSON.stringify(call?.request.messages)).toContain('a fault is reported');
    expect(JSON.stringify(call?.request.messages)).not.toContain('opened');
  });

  it('are not asked about again when the same bytes come again, also at another gateway', async () => {
    worker.replies = [FAULT, 500];
    const first = await deliver(app(), 'tickets', EVENT);

    expect((await deliver(app(), 'tickets', EVENT)).json()).toEqual(first.json());
    expect(worker.calls).toHaveLength(1);
  });

  it('are asked about once for repeats that arrive at once at a gateway', async () => {
    worker.replies = [FAULT];
    worker.pauseMs = 100;
    const on = app();

    const replies = await Promise.all(Array.from({ length: 5 }, () => deliver(on, 'tickets', EVENT)));

    expect(new Set(replies.map(({ body }) => body)).size).toBe(1);
    expect(worker.calls).toHaveLength(1);
  });

  it('DESIGN 5: a delivery that arrives at several gateways at once is judged by one of them', async () => {
    worker.replies = [FAULT];
    worker.pauseMs = 100;
    const gateways = [app(), app(), app()];

    const replies = await Promise.all(gateways.map((on) => deliver(on, 'tickets', EVENT)));

    expect(replies.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect(new Set(replies.map(({ body }) => body)).size).toBe(1);
    expect(worker.calls).toHaveLength(1);
  });

  it('are judged by the next gateway when the first one got no verdict', async () => {
    worker.replies = ['Certainly!', 500, FAULT];
    worker.pauseMs = 100;

    const replies = await Promise.all([app(), app()].map((on) => deliver(on, 'tickets', EVENT)));

    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([200, 502]);
    expect(worker.calls).toHaveLength(3);
  });

  it.each([
    ['holds the lease of one that was killed', LEASE_OF_THE_DEAD_MS, 60_000],
    ['takes longer than a judgement may', 600_000, 100],
  ])('are judged all the same when another gateway %s', async (_case, leaseMs, judgedElsewhereMs) => {
    worker.replies = [FAULT];
    const body = JSON.stringify(EVENT);
    const lease = `rate:slots:judging:wh:tickets:${createHash('sha256').update(body).digest('hex')}`;
    await deployment.cache.acquireSlot(lease, 'another gateway', 1, leaseMs);

    expect((await deliver(app({ waits: { judgedElsewhereMs } }), 'tickets', body)).statusCode).toBe(200);
    expect(worker.calls).toHaveLength(1);
    await deployment.cache.delete(lease);
  });

  it('are judged when the cache is away', async () => {
    worker.replies = [FAULT];
    const away = () => Promise.reject(new SwitchyardError('service.unreachable', 'the cache is away'));
    const cache = new Proxy(deployment.cache, { get: (real, name: keyof Cache) => (name === 'acquireSlot' ? away : real[name].bind(real)) });

    expect((await deliver(app({ cache }), 'tickets', EVENT)).statusCode).toBe(200);
    expect(worker.calls).toHaveLength(1);
  });

  it('are judged by the default model where no other is named', async () => {
    worker.replies = [FAULT];
    await deliver(app({}, {}), 'tickets', EVENT);

    expect(worker.calls.map(({ request }) => request.model)).toEqual(['a/chat']);
  });

  it.each([
    ['makes no sense', 'Certainly!'],
    ['leaves a routine out', '{"routine_1":true}'],
    ['is an error', 503],
  ])('are judged by the fallback when the first answer %s', async (_case, first) => {
    worker.replies = [first, FAULT];

    expect((await deliver(app(), 'tickets', EVENT)).json()).toMatchObject({ matched: ['fault', 'every'] });
    expect(worker.calls.map(({ request }) => request.model)).toEqual(['a/judge', 'b/judge']);
    expect(new Set(worker.calls.map(({ callId }) => callId)).size).toBe(2);
  });

  it('DESIGN 5: a delivery without a verdict is answered with 502, and nothing of it is stored: its repeat is judged anew', async () => {
    worker.replies = ['Certainly!', 500, FAULT];
    const on = app({}, { evaluation: 'a/judge' });

    const refused = await deliver(on, 'tickets', EVENT);
    expect(refused.statusCode).toBe(502);
    expect(refused.json()).toEqual({ error: expect.stringContaining('could not be judged'), code: 'matching_failed' });
    expect(worker.calls.map(({ request }) => request.model)).toEqual(['a/judge', 'a/judge']);
    expect(await stored()).toEqual([0, 0]);
    expect((await deliver(on, 'tickets', EVENT)).statusCode).toBe(200);
    expect(await stored()).toEqual([1, 2]);
  });

  it('are 502 when no answer comes in time, and when no call can be queued', async () => {
    const silent = app({ waits: { modelCallMs: 50 } });
    const publish = () => Promise.reject(new Error('no broker'));
    const refusing = app({ bus: { ...busOf(deployment.bus), work: { ...deployment.bus.work, publish } } });

    for (const on of [silent, refusing]) expect((await deliver(on, 'tickets', EVENT)).statusCode).toBe(502);
    expect(await stored()).toEqual([0, 0]);
  });

  it('are 503 while the bus has no capacity for model calls, and no model is asked', async () => {
    const bus = { ...busOf(deployment.bus), hasCapacity: (kind?: string) => kind !== 'router.call' };

    expect((await deliver(app({ bus }), 'tickets', EVENT)).statusCode).toBe(503);
    expect((await deliver(app({ bus }), 'tickets', EVENT)).headers['retry-after']).toBe('1');
    expect(worker.calls).toEqual([]);
  });

  it('DESIGN 7: the answer to a call of a gateway is found by a replay when its frame was lost', async () => {
    worker.replies = [FAULT];

    expect((await deliver(app({ bus: losingFrames(), waits: { modelSilenceMs: 20 } }), 'tickets', EVENT)).json()).toMatchObject({
      matched: ['fault', 'every'],
    });
    expect(worker.calls).toHaveLength(1);
  });

  it('are judged when the broker was away: its return triggers a replay', async () => {
    worker.replies = [FAULT];
    const handlers: (() => void)[] = [];
    const onReconnect: Bus['onReconnect'] = (handler) => {
      handlers.push(handler);
      return { stop: () => Promise.resolve() };
    };
    const replying = deliver(app({ bus: { ...losingFrames(), onReconnect }, waits: { modelSilenceMs: 60_000 } }), 'tickets', EVENT);
    await expect.poll(() => worker.calls.length, { timeout: 60_000 }).toBe(1);
    await expect
      .poll(
        () => {
          for (const handler of handlers) handler();
          return stored();
        },
        { timeout: 60_000 },
      )
      .toEqual([1, 2]);

    expect((await replying).statusCode).toBe(200);
  });
});
