import { setTimeout as pause } from 'node:timers/promises';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { startNatsCluster } from '../../scripts/servers/test-services.mjs';
import type { Bus } from '../bus.ts';
import { type BusKind, type BusUnderTest, eventually } from '../conformance/under-test.ts';
import { busConformance } from '../conformance.ts';
import { openNatsBus } from './nats-bus.ts';
import { defaultSettings, type NatsSettings } from './settings.ts';
import { deleteStreams } from './test-support/delete-streams.ts';

const SMALL_BYTES = 1024 * 1024;

/** Windows in real time: long enough for a busy machine to check before they end. */
const settingsOf: Record<BusKind, Partial<NatsSettings>> = {
  // Nothing is delivered again for its age: what comes again was returned.
  ordinary: { usageAckWaitMs: 60_000 },
  brief: { dedupeMs: 2_000, tokenMaxAgeMs: 3_000, blobMaxAgeMs: 2_000, usageAckWaitMs: 1_000 },
  small: { commandMaxBytes: SMALL_BYTES, workMaxBytes: SMALL_BYTES, usageMaxBytes: SMALL_BYTES },
};

let cluster: Awaited<ReturnType<typeof startNatsCluster>>;
let broker: NatsConnection;
let manager: JetStreamManager;

beforeAll(async () => {
  cluster = await startNatsCluster(3);
  broker = await connect({ servers: cluster.url.split(',') });
  manager = await jetstreamManager(broker, { checkAPI: false });
  await eventually(
    () =>
      manager.getAccountInfo().then(
        () => true,
        () => false,
      ),
    (hasLeader) => hasLeader,
  );
});

afterAll(async () => {
  await broker?.close();
  await cluster?.close();
});

busConformance('nats with three replicas', async (kind): Promise<BusUnderTest> => {
  await deleteStreams(manager);
  const settings = settingsOf[kind];
  const { dedupeMs, tokenMaxAgeMs, blobMaxAgeMs } = { ...defaultSettings, ...settings };
  const opened: Bus[] = [];
  const open = async () => {
    const bus = await openNatsBus({ servers: cluster.url, user: null, password: null, replicas: 3, log: silentLog, settings });
    opened.push(bus);
    return bus;
  };
  return {
    bus: await open(),
    windows: { dedupeMs, replayMs: tokenMaxAgeMs, blobMs: blobMaxAgeMs },
    capacityBytes: SMALL_BYTES,
    pass: (ms) => pause(ms),
    reopen: open,
    another: open,
    close: async () => {
      for (const bus of opened) await bus.close();
    },
  };
});
