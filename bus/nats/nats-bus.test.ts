import { setTimeout as pause } from 'node:timers/promises';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import { type NatsServer, startNatsServer } from '../../scripts/servers/test-services.mjs';
import type { Bus } from '../bus.ts';
import type { BusKind, BusUnderTest } from '../conformance/under-test.ts';
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

interface Broker {
  server: NatsServer;
  connection: NatsConnection;
  manager: JetStreamManager;
}

/** Side by side, since the cases mostly wait for windows; each suite on a server of its own, whose streams are deleted before each case. */
describe.each([
  ['nats', { isLocal: false }],
  /** The cases publish and read on one bus, so that their messages pass in memory; with `another` they pass over the broker. */
  ['nats, with readers in this process', { isLocal: true }],
] as const)('%s', { concurrent: true }, (name, { isLocal }) => {
  let broker: Broker;
  beforeAll(async () => {
    const server = await startNatsServer();
    const connection = await connect({ servers: server.url });
    broker = { server, connection, manager: await jetstreamManager(connection) };
  });
  afterAll(async () => {
    await broker?.connection.close();
    await broker?.server.close();
  });

  busConformance(name, (kind) => openUnderTest(broker, kind, { isLocal }));
});

async function openUnderTest({ server, manager }: Broker, kind: BusKind, { isLocal }: { isLocal: boolean }): Promise<BusUnderTest> {
  await deleteStreams(manager);
  const settings = settingsOf[kind];
  const { dedupeMs, tokenMaxAgeMs, blobMaxAgeMs } = { ...defaultSettings, ...settings };
  const opened: Bus[] = [];
  const open = async () => {
    const bus = await openNatsBus({ servers: server.url, user: null, password: null, isLocal, log: silentLog, settings });
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
}
