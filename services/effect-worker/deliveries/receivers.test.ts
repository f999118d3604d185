import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { deliveryItem, WAIT, WorkerDeployment } from '../test-support/worker-deployment.ts';
import { CALLBACK_LIMITS, EVENT_LIMITS, HeldDeliveries, Receivers } from './receivers.ts';

const DEAD = 'https://dead.example/callback';
const GOOD = 'https://good.example/callback';
/** What hangs does not end by its deadline. */
const LONGER_THAN_A_TEST_MS = 600_000;
/** Together they have more callbacks than a worker executes at once. */
const SLOW = [1, 2, 3, 4].map((number) => `https://slow-${number}.example/callback`);

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
let bundleHash: string;
/** Posts to the dead receiver, and how to end those that hang. */
let posted: string[];
let hanging: (() => void)[];
let dead: 'hangs' | 'is silent' | 'answers';
let nowMs: number;
/** How far the machine's clock was set back. */
let setBackMs: number;

const silence = () => new SwitchyardError('outbound.failed', 'no answer', { details: { reason: 'timeout' } });
const poster: Pick<GuardedPoster, 'post'> = {
  async post({ url }) {
    posted.push(url);
    if (url === DEAD && dead === 'is silent') throw silence();
    if ((url === DEAD && dead === 'hangs') || SLOW.includes(url)) await new Promise<void>((_, reject) => hanging.push(() => reject(silence())));
    return { status: 200, retryAfterMs: null };
  },
};
const toDead = () => posted.filter((url) => url === DEAD).length;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());

beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
  bundleHash = await deployment.bundle();
  [posted, hanging, dead, setBackMs] = [[], [], 'hangs', 0];
  nowMs = systemClock.nowMs();
});
afterEach(async () => {
  for (const end of hanging) end();
  await deployment.close();
  await bus.close();
});

const clocks = { clock: { nowMs: () => nowMs - setBackMs }, intervalClock: { nowMs: () => nowMs } };
const start = () => deployment.start({ kinds: ['delivery'] }, { poster, ...clocks });

async function publish(url: string, remainingMs = 60_000) {
  const item = deliveryItem(await deployment.delivery({ url, bundleHash }), { deadlineAtMs: nowMs + remainingMs });
  await deployment.publish('delivery', item);
  return item;
}

async function outcomeOf(url: string) {
  const item = await publish(url);
  const report = await deployment.reportOf('delivery.reported', item.effectId);
  return { ...report, attemptsInRow: await deployment.attemptsOf(item.deliveryId) };
}

/** Five consecutive posts without a response. */
async function silenceReceiver(): Promise<void> {
  dead = 'is silent';
  await start();
  for (let posts = 0; posts < 5; posts += 1) expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'failed', attempts: 1 });
}

it('DESIGN 6: callbacks and events of any number of receivers leave a worker room for another one', () => {
  for (let busy = 1; busy <= 40; busy += 1) {
    const held = new HeldDeliveries(64);
    const kinds = [CALLBACK_LIMITS, EVENT_LIMITS].map((limits) => new Receivers(systemClock, limits, held));
    const receivers = kinds.flatMap((kind) => Array.from({ length: busy }, (_, index) => kind.of(`https://busy-${index}.example`)));
    let admitted = 0;
    // In turn, each as often as it may.
    for (let round = 0; round < 64; round += 1) {
      for (const receiver of receivers) {
        if (receiver.isFull(round % 2 === 0)) continue;
        void receiver.withSlot(new AbortController().signal, () => new Promise(() => {}));
        admitted += 1;
      }
    }

    // A receiver without any is admitted, so that many of them may hold one each.
    expect(admitted).toBeLessThan(Math.max(64, receivers.length + 1));
    for (const kind of kinds) expect(kind.of('https://new.example').isFull(false)).toBe(false);
  }
});

describe('a receiver that hangs', () => {
  it('DESIGN 6: a receiver that hangs has a share of the slots, and callbacks to others are posted meanwhile', async () => {
    await start();
    const stuck: Awaited<ReturnType<typeof publish>>[] = [];
    for (let count = 0; count < 200; count += 1) stuck.push(await publish(DEAD));
    await vi.waitFor(() => expect(toDead()).toBe(16), WAIT);
    for (let count = 0; count < 20; count += 1) expect(await outcomeOf(GOOD)).toMatchObject({ outcome: 'delivered', attempts: 1 });

    expect(toDead()).toBe(16);
    // Deliveries beyond the waiting limit were postponed without an attempt.
    await vi.waitFor(
      () => expect(deployment.commands.filter((command) => stuck.some(({ effectId }) => effectId === command.commandId)).length).toBe(120),
      WAIT,
    );
    const { rows } = await database.query<{ sum: string }>('select sum(attempts)::text as sum from deliveries where url = $1 and state = $2', [DEAD, 'open']);
    expect(rows[0]?.sum).toBe('16');
  });

  it('DESIGN 6: several receivers that hang leave others a share of the worker, however many callbacks wait for them', async () => {
    await start();
    for (let count = 0; count < 80; count += 1) for (const url of SLOW) await publish(url, LONGER_THAN_A_TEST_MS);
    await vi.waitFor(() => expect(posted.length).toBe(4 * 16), WAIT);

    for (let count = 0; count < 5; count += 1) expect(await outcomeOf(GOOD)).toMatchObject({ outcome: 'delivered', attempts: 1 });
    expect(posted.filter((url) => url !== GOOD).length).toBe(4 * 16);
  });

  it('leaves others a share also when all that waits for it is overdue', async () => {
    await start();
    const overdue = await Promise.all(Array.from({ length: 260 }, () => deployment.delivery({ url: DEAD, bundleHash })));
    await database.query(`update deliveries set created_at = now() - interval '11 minutes' where id = any($1)`, [overdue]);
    for (const id of overdue) await deployment.publish('delivery', deliveryItem(id, { deadlineAtMs: nowMs + LONGER_THAN_A_TEST_MS }));
    await vi.waitFor(() => expect(toDead()).toBe(16), WAIT);

    expect(await outcomeOf(GOOD)).toMatchObject({ outcome: 'delivered', attempts: 1 });
    expect(toDead()).toBe(16);
    // The breaker does not keep them.
    dead = 'answers';
  });

  it('gets a callback that is ten minutes old however many wait for it, so that it settles', async () => {
    await start();
    const young: Awaited<ReturnType<typeof publish>>[] = [];
    for (let count = 0; count < 81; count += 1) young.push(await publish(DEAD));
    // Sixteen are in flight and sixty-four wait: the next one was postponed.
    await vi.waitFor(() => expect(deployment.commands.filter((command) => young.some(({ effectId }) => effectId === command.commandId)).length).toBe(1), WAIT);
    const old = deliveryItem(await deployment.delivery({ url: DEAD, bundleHash }), { deadlineAtMs: nowMs + 60_000 });
    await database.query(`update deliveries set created_at = now() - interval '11 minutes' where id = $1`, [old.deliveryId]);
    await deployment.publish('delivery', old);
    await outcomeOf(GOOD);
    dead = 'answers';
    for (const end of hanging.splice(0, 4)) end();

    expect(await deployment.reportOf('delivery.reported', old.effectId)).toMatchObject({ outcome: 'delivered', attempts: 1 });
  });

  it('gets no more posts when five have timed out, and waiting deliveries are nakked', async () => {
    await start();
    const items: Awaited<ReturnType<typeof publish>>[] = [];
    for (let count = 0; count < 30; count += 1) items.push(await publish(DEAD));
    await vi.waitFor(() => expect(toDead()).toBe(16), WAIT);
    for (const end of hanging.splice(0)) end();

    for (const { effectId } of items) expect(await deployment.reportOf('delivery.reported', effectId)).toMatchObject({ outcome: 'failed' });
    // A slot may have been free before the fifth silence was noted.
    expect(toDead()).toBeLessThanOrEqual(20);
  });
});

describe('a receiver that does not answer', () => {
  it('DESIGN 6: a receiver that does not answer gets no more posts for a while, which costs its callbacks no attempt', async () => {
    await silenceReceiver();
    const report = await outcomeOf(DEAD);
    expect(report).toMatchObject({ outcome: 'failed', attempts: 0, attemptsInRow: 0, reason: expect.stringContaining('nothing was posted') });
    expect(report.retryAfterMs).toBeGreaterThanOrEqual(5_000);
    expect(toDead()).toBe(5);
    expect(await outcomeOf(GOOD)).toMatchObject({ outcome: 'delivered' });
    expect(deployment.lines.filter((line) => line.includes('"receiver":"dead.example"'))).toHaveLength(1);
    expect(deployment.lines.join()).not.toContain('/callback');
  });

  it('is probed by one post after a pause: silence makes the pause longer, an answer ends it', async () => {
    await silenceReceiver();
    nowMs += 5_001;
    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'failed', attempts: 1 });
    nowMs += 5_001;
    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'failed', attempts: 0 });
    nowMs += 5_001;
    dead = 'hangs';
    const probe = await publish(DEAD);
    await vi.waitFor(() => expect(toDead()).toBe(7), WAIT);
    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'failed', attempts: 0 });
    dead = 'answers';
    for (const end of hanging.splice(0)) end();
    await deployment.reportOf('delivery.reported', probe.effectId);
    nowMs += 30_001;
    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'delivered', attempts: 1 });
    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'delivered', attempts: 1 });
  });

  it('is probed after the same pause when the clock is set back by an hour meanwhile', async () => {
    await silenceReceiver();
    setBackMs = 3_600_000;
    nowMs += 5_001;

    expect(await outcomeOf(DEAD)).toMatchObject({ outcome: 'failed', attempts: 1 });
  });

  it('still gets a callback that is ten minutes old, so that it settles', async () => {
    await silenceReceiver();
    const item = deliveryItem(await deployment.delivery({ url: DEAD, bundleHash, attempts: 4 }));
    await database.query(`update deliveries set created_at = now() - interval '11 minutes' where id = $1`, [item.deliveryId]);
    await deployment.publish('delivery', item);
    expect(await deployment.reportOf('delivery.reported', item.effectId)).toMatchObject({ outcome: 'exhausted', attempts: 5 });
  });

  it('is one without a response: error responses, and refused addresses, do not count', async () => {
    dead = 'answers';
    await deployment.start(
      { kinds: ['delivery'] },
      {
        ...clocks,
        poster: {
          post: async ({ url }) => {
            if (url === DEAD) return { status: 503, retryAfterMs: null };
            throw new SwitchyardError('outbound.refused', 'not allowed');
          },
        },
      },
    );
    for (let posts = 0; posts < 7; posts += 1) {
      expect(await outcomeOf(DEAD)).toMatchObject({ attempts: 1, reason: 'the receiver answered 503' });
      expect(await outcomeOf(GOOD)).toMatchObject({ attempts: 1, reason: expect.stringContaining('refused') });
    }
  });
});
