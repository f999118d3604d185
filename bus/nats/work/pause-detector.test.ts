import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus, WorkItem } from '../../bus.ts';
import { workQueues } from '../../work-queues.ts';
import { openNatsBus } from '../nats-bus.ts';
import { PauseDetector } from './pause-detector.ts';

/** Blocks this process, like a stop signal. */
function blockThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('a process that was paused', () => {
  it('dates its first reads from the pause, and later ones from their receipt', async () => {
    const pauseDetector = new PauseDetector();
    const beganAt = performance.now();
    expect(pauseDetector.deliveredSince()).toBeGreaterThanOrEqual(beganAt);

    blockThread(700);
    const readAt = performance.now();

    expect(pauseDetector.deliveredSince()).toBeLessThanOrEqual(readAt - 700);
    await expect.poll(() => pauseDetector.deliveredSince() > readAt, { timeout: 60_000 }).toBe(true);
    pauseDetector.stop();
  });

  it('dates what it reads after two pauses in a row from the first one', () => {
    const pauseDetector = new PauseDetector();
    const beganAt = performance.now();
    pauseDetector.deliveredSince();
    for (let pauses = 0; pauses < 2; pauses += 1) {
      blockThread(600);
      pauseDetector.deliveredSince();
    }

    expect(pauseDetector.deliveredSince()).toBeLessThan(beganAt + 600);
    pauseDetector.stop();
  });

  it('that stops again and again dates what it reads from the last pause but one', () => {
    const pauseDetector = new PauseDetector();
    const endedAt: number[] = [];
    for (let pauses = 0; pauses < 4; pauses += 1) {
      blockThread(600);
      endedAt.push(performance.now());
      pauseDetector.deliveredSince();
    }
    const since = pauseDetector.deliveredSince();

    // The third began behind the end of the second.
    expect(since).toBeGreaterThanOrEqual(endedAt[1] ?? 0);
    expect(since).toBeLessThan(endedAt[2] ?? 0);
    pauseDetector.stop();
  });
});

describe('a worker that was paused', () => {
  let server: NatsServer;
  let bus: Bus;
  beforeAll(async () => {
    server = await startNatsServer();
    bus = await openNatsBus({ servers: server.url, user: null, password: null, log: silentLog });
  });
  afterAll(async () => {
    await bus?.close();
    await server?.close();
  });

  it('leaves an item whose lease expired to the next delivery', async () => {
    const deliveries: number[] = [];
    const consumer = bus.work.consume('tool', { concurrency: 1, ackWaitMs: 1_200 }, async (item) => {
      deliveries.push(item.deliveryCount);
      await item.ack();
    });
    await bus.work.publish('tool', 'first', '{}');
    await expect.poll(() => deliveries).toEqual([1]);
    const publisher = await otherPublisher(server.url, workQueues.tool.pattern);

    publisher.publish();
    // Another thread publishes it and the broker delivers it, while this thread is blocked.
    blockThread(2_500);

    await expect.poll(() => deliveries.length, { timeout: 60_000 }).toBe(2);
    expect(deliveries[1]).toBeGreaterThan(1);
    await publisher.end();
    await consumer.stop();
  });

  it('has no lease any more when an item is redelivered, though its pause was too short to be detected', async () => {
    const items: WorkItem[] = [];
    // Longer than a busy machine takes from a delivery to its ack; the pause is a part of it that the worker does not see.
    const consumer = bus.work.consume('delivery', { concurrency: 2, ackWaitMs: 3_000 }, async (item) => void items.push(item));
    await bus.work.publish('delivery', 'warm', '{}');
    await expect.poll(() => items.length).toBe(1);
    await items[0]?.ack();
    const publisher = await otherPublisher(server.url, workQueues.delivery.pattern);

    publisher.publish();
    blockThread(400);

    await expect.poll(() => items.length, { timeout: 60_000, interval: 5 }).toBe(3);
    const [, first, second] = items;
    await first?.nak(0);
    await second?.ack();
    await bus.work.publish('delivery', 'last', '{}');
    await expect.poll(() => items.at(-1)?.messageId, { timeout: 60_000 }).toBe('last');
    expect(items.map(({ deliveryCount: delivery }) => delivery)).toEqual([1, 1, 2, 1]);
    await items.at(-1)?.ack();
    await publisher.end();
    await consumer.stop();
  });
});

/** In a separate thread. */
async function otherPublisher(url: string, subject: string) {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { connect } = require(workerData.client);
    connect({ servers: workerData.url }).then((connection) => {
      parentPort.once('message', () => connection.publish(workerData.subject, '{}'));
      parentPort.postMessage('ready');
    });`;
  const client = fileURLToPath(import.meta.resolve('@nats-io/transport-node'));
  const thread = new Worker(source, { eval: true, workerData: { url, subject, client } });
  await new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
  return { publish: () => thread.postMessage('go'), end: () => thread.terminate() };
}
