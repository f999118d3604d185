import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import type { Bus, WorkItem } from '../../bus.ts';
import { Collector, depthsOf, eventually, gate } from '../../conformance/under-test.ts';
import { workQueues } from '../../work-queues.ts';
import { openNatsBus } from '../nats-bus.ts';
import { streams } from '../streams.ts';

/** A lease that no test outlasts: what comes again was sent again. */
const LEASE_MS = 600_000;

let server: NatsServer;
let bus: Bus;
let other: NatsConnection;
beforeAll(async () => {
  server = await startNatsServer();
  bus = await openNatsBus({ servers: server.url, user: null, password: null, log: silentLog });
  other = await connect({ servers: server.url });
});
afterAll(async () => {
  await other?.close();
  await bus?.close();
  await server?.close();
});

/** The broker has sent the only pending item again, as the leader of a consumer does that has not read of its delivery. */
async function sendAgain(): Promise<void> {
  const { consumer } = workQueues.tool;
  const manager = await jetstreamManager(other);
  const { delivered, ack_floor: floor, num_pending } = await manager.consumers.info(streams.work.name, consumer);
  expect(num_pending).toBe(0);
  const [sequence, position] = [floor.stream_seq + 1, delivered.consumer_seq];
  await other.request(`$JS.ACK.${streams.work.name}.${consumer}.1.${sequence}.${position}.${Date.now()}000000.0`, '-NAK');
  await eventually(
    async () => (await manager.consumers.info(streams.work.name, consumer)).delivered.consumer_seq,
    (sent) => sent > position,
  );
}

it('DESIGN 6: an item that is delivered again while its worker has the lease is not begun again, and is settled by that worker', async () => {
  const deliveries = new Collector<string>();
  const items = new Collector<WorkItem>();
  const done = gate();
  onTestFinished(() => done.open());
  const consumer = bus.work.consume('tool', { concurrency: 4, ackWaitMs: LEASE_MS }, async (item) => {
    deliveries.add(`${item.messageId} ${item.deliveryCount}`);
    items.add(item);
    if (item.messageId === 'long') await done.opened;
    else await item.ack();
  });
  await bus.work.publish('tool', 'long', '{}');
  const [long] = await items.atLeast(1);
  await sendAgain();
  await bus.work.publish('tool', 'next', '{}');
  await deliveries.atLeast(2);
  expect(deliveries.items).toEqual(['long 1', 'next 1']);

  // It still extends the lease, and a nak gives the item back though its handler has not returned.
  await long?.working();
  await long?.nak(0);
  const again = (await items.atLeast(3)).at(-1);
  expect(deliveries.items).toEqual(['long 1', 'next 1', 'long 3']);

  await sendAgain();
  await again?.ack();
  await eventually(
    () => depthsOf(bus),
    ({ tool }) => tool === 0,
  );
  done.open();
  await consumer.stop();
  expect(deliveries.items).toHaveLength(3);
});
