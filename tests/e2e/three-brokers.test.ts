import { rmSync } from 'node:fs';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from '../../bus/bus.ts';
import { Collector, START } from '../../bus/conformance/under-test.ts';
import { isTooOldForReplicas } from '../../bus/nats/cluster-version.ts';
import { openNatsBus } from '../../bus/nats/nats-bus.ts';
import { upgradeStreams } from '../../bus/nats/upgrade-streams.ts';
import { type NatsServer, startNatsCluster, startNatsServer } from '../../scripts/servers/test-services.mjs';
import { type Log, silentLog } from '../../shared/telemetry/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { casesOfToday } from '../helpers/tier.ts';

/** Elections of nats-server take up to 9 s, and a lost consumer may need several attempts. */
const TIMEOUT = { timeoutMs: 60_000 };
const TEST_TIMEOUT_MS = 400_000;

const STREAMS = ['CMD', 'WORK', 'TOK', 'BLOB', 'USAGE'];

let servers: NatsServer[];
let url: string;
let closeCluster: () => Promise<void>;
let connection: NatsConnection;
let manager: JetStreamManager;
const opened: Bus[] = [];

beforeAll(async () => {
  ({ servers, url, close: closeCluster } = await startNatsCluster(3));
  connection = await connect({ servers: url.split(','), maxReconnectAttempts: -1, reconnectTimeWait: 50, pingInterval: 1_000 });
  manager = await jetstreamManager(connection, { checkAPI: false });
  await eventually(() => manager.getAccountInfo(), TIMEOUT);
});

afterEach(async () => {
  for (const bus of opened.splice(0)) await bus.close();
});

afterAll(async () => {
  await connection?.close();
  await closeCluster?.();
});

async function openBus(replicas: number): Promise<Bus> {
  const bus = await openNatsBus({ servers: url, user: null, password: null, replicas, log: silentLog, settings: { storeBudgetMs: 60_000 } });
  opened.push(bus);
  return bus;
}

function follow(bus: Bus, partition: number): { read: Collector<string>; restarts: () => number } {
  const read = new Collector<string>();
  let restarts = 0;
  const take = async (commands: { body: string }[]) => {
    for (const { body } of commands) read.add(body);
  };
  bus.commands.read(partition, START, take, {
    onRestart: () => {
      restarts += 1;
    },
  });
  return { read, restarts: () => restarts };
}

/** All replicas of all streams are there and up to date. */
async function isWhole(): Promise<void> {
  const currentOf = async (name: string) => {
    const { cluster } = await manager.streams.info(name);
    return cluster?.leader !== undefined && (cluster.replicas ?? []).filter(({ current, offline }) => current && !offline).length === 2;
  };
  await eventually(async () => (await Promise.all(STREAMS.map(currentOf))).every(Boolean), TIMEOUT);
}

async function leaderOf(stream: string): Promise<NatsServer> {
  const name = await eventually(async () => (await manager.streams.info(stream)).cluster?.leader, TIMEOUT);
  const server = servers[Number(name.replace('broker-', ''))];
  if (server === undefined) throw new Error(`there is no server ${name}`);
  return server;
}

describe('three brokers', () => {
  it('DESIGN 3: streams of one server are on three after the operator has changed them, with all that they hold', async () => {
    const bus = await openBus(1);
    const { read } = follow(bus, 1);
    await bus.commands.append(1, 'id-a', 'a');
    await read.atLeast(1);
    const upgrades = await upgradeStreams({ servers: url, user: null, password: null, replicas: 3 });
    const differences = [{ field: 'num_replicas', found: 1, declared: 3 }];
    expect(upgrades).toEqual(STREAMS.map((name) => ({ name, outcome: 'changed', differences })));
    await isWhole();
    await bus.commands.append(1, 'id-b', 'b');

    expect(await follow(bus, 1).read.atLeast(2)).toEqual(['a', 'b']);
    expect(await read.atLeast(2)).toEqual(['a', 'b']);
    // A process without the setting takes none away.
    expect((await upgradeStreams({ servers: url, user: null, password: null, replicas: 1 })).map(({ outcome }) => outcome)).toEqual(
      STREAMS.map(() => 'unchanged'),
    );
  });

  it('DESIGN 3: a process warns of servers that may lose messages, by their version', async () => {
    const warnings: { version?: unknown }[] = [];
    const log = { ...silentLog, warn: (fields: object, text: string) => void (text.includes('2.10.14') && warnings.push(fields)) } as Log;
    opened.push(await openNatsBus({ servers: url, user: null, password: null, replicas: 3, log }));

    const version = connection.info?.version;
    expect(warnings).toEqual(isTooOldForReplicas(version) ? [{ version }] : []);
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
  });

  it('are asked of a single server in vain: the start is refused, and names the setting', async () => {
    const single = await startNatsServer();
    try {
      await expect(openNatsBus({ servers: single.url, user: null, password: null, replicas: 3, log: silentLog })).rejects.toMatchObject({
        code: 'bus.stream_refused',
        message: 'NATS_REPLICAS is 3, but the broker is a single server and no cluster',
      });
    } finally {
      await single.close();
    }
  });

  const losses = [
    { what: 'killed', harm: (server: NatsServer) => server.kill(), mend: (server: NatsServer) => server.start() },
    { what: 'cut off', harm: async (server: NatsServer) => server.signal('SIGSTOP'), mend: async (server: NatsServer) => server.signal('SIGCONT') },
    {
      what: 'emptied',
      harm: async (server: NatsServer) => {
        await server.kill();
        rmSync(server.folder, { recursive: true });
      },
      mend: (server: NatsServer) => server.start(),
    },
  ].map((loss, index) => ({ ...loss, partition: index + 10 }));

  it.each(casesOfToday(losses))(
    'DESIGN 3: nothing acknowledged is lost, and the others go on, when the leader of the command log is $what',
    async ({ what, partition, harm, mend }) => {
      const [sender, receiver] = [await openBus(3), await openBus(3)];
      await isWhole();
      const { read, restarts } = follow(receiver, partition);
      const worked = new Collector<string>();
      receiver.work.consume('tool', { concurrency: 4, ackWaitMs: 5_000 }, async (item) => {
        worked.add(item.messageId);
        await item.ack();
      });
      const commands: string[] = [];
      const work: string[] = [];
      const send = async (name: string) => {
        await Promise.all([sender.commands.append(partition, `${what}-${name}`, `${what}-${name}`), sender.work.publish('tool', `${what}-${name}`, 'x')]);
        commands.push(`${what}-${name}`);
        work.push(`${what}-${name}`);
      };
      const missing = () => [
        ...commands.filter((id) => !read.items.includes(id)),
        ...work.filter((id) => !worked.items.includes(id)).map((id) => `work ${id}`),
      ];
      const isAllThere = () =>
        eventually(() => {
          if (missing().length > 0) throw new Error(`missing: ${missing().join(', ')}`);
          return true;
        }, TIMEOUT);
      for (let index = 0; index < 20; index += 1) await send(`before-${index}`);
      await isAllThere();

      const victim = await leaderOf('CMD');
      await harm(victim);
      for (let index = 0; index < 20; index += 1) await send(`during-${index}`);
      await isAllThere();
      await mend(victim);
      await isWhole();
      for (let index = 0; index < 20; index += 1) await send(`after-${index}`);
      await isAllThere();

      expect(restarts()).toBe(0);
      expect(read.items).toEqual([...new Set(read.items)]);
    },
    TEST_TIMEOUT_MS,
  );
});
