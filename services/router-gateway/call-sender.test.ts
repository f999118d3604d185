import { describe, expect, it, vi } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { hello, useGateway } from './test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

/** Silence after which another worker gets the call. */
const SOON_MS = 40;

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

/** Counts queued calls from now on; calls that earlier tests left without an answer are queued after a silence, and not counted. */
function countPublishes(): { count: number } {
  const published = { count: 0 };
  const { origin } = gateway.opened.readers;
  gateway.faults.beforePublish = async (callId) => {
    if (callId.includes(origin)) published.count += 1;
  };
  return published;
}

/** Until silence has led to several replays. */
async function severalLooks(): Promise<void> {
  const replaysThen = gateway.faults.replays;
  await eventually(() => gateway.faults.replays).toBeGreaterThan(replaysThen + 3);
}

const asking = (content: string) => ({ messages: [{ role: 'user', content }] });

describe('a call that is sent to a worker', () => {
  it('is dispatched to a free one, and not queued', async () => {
    const published = countPublishes();
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(held.delivery).toBe(1);
    expect(published.count).toBe(0);
  });

  it.each([
    { what: 'leaves at once when its client waits for the first word', stream: true, others: 1, hurried: 1 },
    { what: 'leaves at once when no other is on its way', stream: false, others: 0, hurried: 1 },
    { what: 'leaves with all else of its turn when its client waits for the whole', stream: false, others: 1, hurried: 0 },
  ])('$what', async ({ stream, others, hurried }) => {
    for (let other = 0; other < others; other += 1) {
      void gateway.post(hello);
      await gateway.worker.next();
    }
    const flush = vi.spyOn(gateway.bus, 'flush');
    const answered = gateway.post({ ...hello, stream });
    const held = await gateway.worker.next();
    if (stream) held.frame('done', 1, '[DONE]');
    else held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(flush).toHaveBeenCalledTimes(hurried);
    flush.mockRestore();
  });

  it('is queued without a free worker, and delivered as for the first time', async () => {
    gateway.faults.refusesDispatches = true;
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(held.delivery).toBe(1);
  });

  it('fails with 503 without a free worker when the queue refuses it', async () => {
    await gateway.reopen({ limits: { publishMs: 20 } });
    gateway.faults.refusesDispatches = true;
    gateway.faults.beforePublish = () => new Promise(() => {});

    const answered = await gateway.post(hello);
    expect(answered.statusCode).toBe(503);
    expect(answered.headers['retry-after']).toBe('1');
  });

  it('DESIGN 6: is sent again, once, after silence, marked as a redelivery', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    gateway.faults.losesDispatches = true;
    const published = countPublishes();
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    await severalLooks();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(held.delivery).toBe(2);
    expect(published.count).toBe(1);
    const fields = { call_id: held.call.callId, waited_ms: expect.any(Number) };
    expect(gateway.opened.log.lines).toContainEqual(expect.objectContaining({ level: 'warn', fields }));
  });

  it('is not sent again because its frames can not be replayed: that says nothing about its worker', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    const published = countPublishes();
    gateway.faults.beforeReplay = async () => {
      throw new Error('the broker is away');
    };
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    await severalLooks();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(published.count).toBe(0);
  });

  it('is not sent again while the bus is away, when no worker can be received', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    const published = countPublishes();
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    gateway.faults.ready = false;
    await severalLooks();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(published.count).toBe(0);
  });

  it('is not sent again when it is queued already, since the queue redelivers it', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    gateway.faults.refusesDispatches = true;
    const published = countPublishes();
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    await severalLooks();
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(published.count).toBe(1);
  });

  it('fails when its worker is lost so late that it could be queued twice', async () => {
    let isLate = false;
    // The sender's clock alone: the deadlines of the whole process go by `performance.now()`.
    const senderNowMs = () => performance.now() + (isLate ? 101_000 : 0);
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS }, senderNowMs });
    gateway.faults.losesDispatches = true;
    const published = countPublishes();
    const dispatched = vi.spyOn(gateway.bus.work, 'dispatch');
    const answering = gateway.post(hello);
    await eventually(() => dispatched.mock.calls.length).toBe(1);
    isLate = true;
    const answered = await answering;
    dispatched.mockRestore();

    expect(answered.statusCode).toBe(502);
    expect(published.count).toBe(0);
  });

  it('is not sent again while its worker sends heartbeats', async () => {
    // A busy machine may stand still for a second between two heartbeats.
    await gateway.reopen({ limits: { silenceMs: 4_000 } });
    const published = countPublishes();
    const answered = gateway.post(hello);
    const held = await gateway.worker.next();
    let beats = 0;
    const beating = setInterval(() => {
      held.beat();
      beats += 1;
    }, 20);
    // More than the silence limit covers.
    await eventually(() => beats).toBeGreaterThan(220);
    clearInterval(beating);
    held.body(200, {});

    expect((await answered).statusCode).toBe(200);
    expect(published.count).toBe(0);
  });

  it('is queued when its worker is lost behind a part of the answer, for another one to bill that part, and fails for its client', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    const published = countPublishes();
    const answered = gateway.post({ ...hello, stream: true });
    const held = await gateway.worker.next();
    held.frame('content', 1, '{"shown":true}');

    expect((await answered).body).toContain('"finish_reason":"error"');
    const settling = await gateway.worker.next();
    expect(settling).toMatchObject({ delivery: 2, call: held.call });
    expect(published.count).toBe(1);
  });

  it('is sent again when its frames had no content', async () => {
    await gateway.reopen({ limits: { silenceMs: SOON_MS, silenceMaxMs: SOON_MS } });
    const answered = gateway.post({ ...hello, stream: true });
    const first = await gateway.worker.next();
    first.frame('open', 1, '{"debug":true}');
    const second = await gateway.worker.next();
    second.frame('content', 1, '{"shown":true}', second.delivery);
    second.frame('done', 2, '[DONE]', second.delivery);

    expect((await answered).body).toContain('{"shown":true}');
    expect(second.delivery).toBe(2);
  });

  it('is queued at once when it is detached, and when it is too large for one message: bytes are counted, not characters', async () => {
    await gateway.reopen({ limits: { longDispatchBytes: 512 * 1024 } });
    const published = countPublishes();
    for (const [payload, headers] of [
      [hello, { 'x-detach': 'true' }],
      [asking('x'.repeat(525_000)), {}],
      [asking('\u20ac'.repeat(175_000)), {}],
    ] as const) {
      const answered = gateway.post(payload, headers);
      await gateway.answerNext();
      expect((await answered).statusCode).toBe(200);
    }
    expect(published.count).toBe(3);
  });

  it('is dispatched with a long text, and queued while other long texts take up their byte budget', async () => {
    await gateway.reopen({ limits: { longDispatchesBytes: 150_000 } });
    const published = countPublishes();
    const long = asking('x'.repeat(100_000));
    const first = gateway.post(long);
    const held = await gateway.worker.next();
    expect(published.count).toBe(0);
    const second = gateway.post(long);
    await gateway.answerNext();
    expect((await second).statusCode).toBe(200);
    expect(published.count).toBe(1);

    held.body(200, {});
    expect((await first).statusCode).toBe(200);
    const third = gateway.post(long);
    await gateway.answerNext();
    expect((await third).statusCode).toBe(200);
    expect(published.count).toBe(1);
  });

  it('is queued when it has become too large for a message meanwhile, as behind a reconnect to another broker', async () => {
    const published = countPublishes();
    vi.spyOn(gateway.bus.work, 'maxDispatchBytes').mockReturnValueOnce(1_000_000).mockReturnValue(50_000);
    const answered = gateway.post(asking('x'.repeat(100_000)));
    await gateway.answerNext();

    expect((await answered).statusCode).toBe(200);
    expect(published.count).toBe(1);
  });

  it('counts as a held body until it ends', async () => {
    await gateway.reopen({ limits: { bufferedBodyBytes: 10 } });
    const first = gateway.post(hello);
    const held = await gateway.worker.next();
    expect((await gateway.post(hello)).statusCode).toBe(503);

    held.body(200, {});
    expect((await first).statusCode).toBe(200);
    // It is released when the response is closed, which may be a moment after the client has it.
    const answered = gateway.answerNext();
    await expect.poll(async () => (await gateway.post(hello)).statusCode, { timeout: 60_000 }).toBe(200);
    await answered;
  });
});
