import { rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { z } from 'zod';
import { streams } from '../../../bus/nats/streams.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { BrokerNetwork } from '../broker-network.ts';
import type { Environment } from '../environment.ts';
import type { Load } from '../load.ts';
import { type Gaps, longestGaps } from '../longest-gaps.ts';
import { type Fault, untilItOwns } from '../scenario.ts';

/** Elections take up to 9 s, a replica that has nothing copies its streams, and the machine may be busy. */
const WHOLE_TIMEOUT_MS = 120_000;
/** Conversations that begin as a broker is lost: enough for partitions with a consumer at each of the brokers. */
const PROBES = 8;
const EVERY_MS = 20_000;
/** Within this a server that was started again is healthy, or never becomes so (docs/deploy.md). */
const HEALTHY_WITHIN_MS = 60_000;
/** Longer than any election, and than the others take to notice. */
const SILENT_MS = 20_000;
/** Each broker once, so that one of them is the leader of all servers. */
const ROUNDS_SILENT = 3;

type Broker = Environment['cluster']['brokers'][number];

interface Answered {
  what: string;
  first: number;
  last: number;
}

/** How long after each loss all of the conversations that began with it were answered, in milliseconds. */
export const answeredAfterMs: Answered[] = [];
/** The same before the first loss of each fault: what the machine takes under this load. */
const answeredBeforeMs: Answered[] = [];

/** From each loss until all servers were whole again, or the next loss. */
const gapsAfter: Gaps[] = [];

/** What was measured, for the output of a test. */
export function printMeasured(): string {
  const [after, before, gaps] = [answeredAfterMs, answeredBeforeMs, gapsAfter].map((measured) => JSON.stringify(measured));
  return `answered after a loss (ms): ${after}; without one: ${before}; longest gaps without a turn or a stream that ended (ms): ${gaps}`;
}

/** @throws what the load has failed with */
async function measureGaps(environment: Environment, load: Load, what: string, fromMs: number): Promise<void> {
  await load.more(0);
  gapsAfter.push(await longestGaps(environment, load, what, fromMs));
}

/** A broker every 20 s, each of them in turn, which is started again once work has gone on. */
export function brokersKilledInTurn(rounds: number): Fault {
  const fault: Fault = {
    name: `one of three brokers is killed every ${EVERY_MS / 1_000} s`,
    // Work in flight at a lost broker may be delivered again.
    extraCalls: rounds,
    inject: async (environment, load) => {
      await workGoesOn(environment, 'killed', answeredBeforeMs);
      for (let round = 0; round < rounds; round += 1) {
        const [broker, next, fromMs] = [brokerOf(environment, round), delay(EVERY_MS), Date.now()];
        await whileLost(broker, () => workGoesOn(environment, 'killed'));
        if (await restartedUnlessHealthy(broker)) fault.extraCalls += 1;
        await allWhole(environment);
        await next;
        await measureGaps(environment, load, 'killed', fromMs);
      }
    },
  };
  return fault;
}

/** Starts it again in any case: what is in flight at the end of a failed test is drained by whole brokers. */
async function whileLost(broker: Broker, check: () => Promise<void>): Promise<void> {
  await broker.kill();
  try {
    await check();
  } finally {
    await broker.start();
  }
}

/** Its connections stay open, and it does not know of it afterwards: it goes on as the leader that it was. */
export const brokerPaused: Fault = {
  name: 'one of three brokers is paused, and goes on',
  extraCalls: ROUNDS_SILENT,
  inject: async (environment, load) => {
    await workGoesOn(environment, 'paused', answeredBeforeMs);
    for (let round = 0; round < ROUNDS_SILENT; round += 1) {
      const broker = brokerOf(environment, round);
      broker.signal('SIGSTOP');
      await silent(environment, load, 'paused', () => broker.signal('SIGCONT'));
    }
  },
};

/** Nothing goes through between it and the others, nor between it and the services, while it runs on. */
export function brokerCutOff(network: BrokerNetwork): Fault {
  return {
    name: 'one of three brokers is cut off, and comes back',
    extraCalls: ROUNDS_SILENT,
    inject: async (environment, load) => {
      await workGoesOn(environment, 'cut off', answeredBeforeMs);
      for (let round = 0; round < ROUNDS_SILENT; round += 1) {
        network.cutOff(round);
        await silent(environment, load, 'cut off', () => network.restore(round));
      }
    },
  };
}

/** @param restore ends the fault */
async function silent(environment: Environment, load: Load, what: string, restore: () => void): Promise<void> {
  const fromMs = Date.now();
  try {
    await Promise.all([workGoesOn(environment, what), delay(SILENT_MS)]);
  } finally {
    restore();
  }
  await load.more(10);
  await allWhole(environment);
  await measureGaps(environment, load, what, fromMs);
}

export const brokerEmptied: Fault = {
  name: 'one of three brokers is lost with its disk, and comes back empty',
  extraCalls: 1,
  inject: async (environment, load) => {
    await workGoesOn(environment, 'emptied', answeredBeforeMs);
    const [broker, fromMs] = [brokerOf(environment, 1), Date.now()];
    await whileLost(broker, async () => {
      rmSync(broker.folder, { recursive: true });
      await workGoesOn(environment, 'emptied');
    });
    if (await restartedUnlessHealthy(broker)) brokerEmptied.extraCalls += 1;
    await allWhole(environment);
    await measureGaps(environment, load, 'emptied', fromMs);
  },
};

/** In the order of docs/deploy.md: each process has its successor before it is asked to end, and each broker hands its streams over. */
export const everythingRestarts: Fault = {
  name: 'all services and brokers are restarted, one after the other',
  /** Two for each broker, which may be started again. */
  extraCalls: 6,
  inject: async (environment, load) => {
    const fromMs = Date.now();
    await replaceServices(environment, (some) => load.more(some));
    await measureGaps(environment, load, 'services restarted', fromMs);
    for (const broker of environment.cluster.brokers) {
      const endsAtMs = Date.now();
      await restart(broker);
      await restartedUnlessHealthy(broker);
      await allWhole(environment);
      await load.more(10);
      await measureGaps(environment, load, 'broker restarted', endsAtMs);
    }
  },
};

async function restart(broker: Broker): Promise<void> {
  await broker.end('SIGUSR2'); // lame duck mode
  await broker.start();
}

/**
 * Restarts a broker that is not healthy a minute after its start, as docs/deploy.md says: nats-server 2.10 may never become so. What is in flight at it may be
 * delivered once more then.
 */
async function restartedUnlessHealthy(broker: Broker): Promise<boolean> {
  if (await becomesHealthy(broker)) return false;
  console.info(`a broker that was not healthy a minute after its start is started again: ${await healthOf(broker)}`);
  await restart(broker);
  return true;
}

async function becomesHealthy(broker: Broker): Promise<boolean> {
  return eventually(() => isHealthy(broker), { timeoutMs: HEALTHY_WITHIN_MS }).then(
    () => true,
    () => false,
  );
}

async function isHealthy({ monitorUrl }: Broker): Promise<boolean> {
  return (await fetch(`${monitorUrl}/healthz`)).ok;
}

/** As the broker says it. */
async function healthOf({ monitorUrl }: Broker): Promise<string> {
  return fetch(`${monitorUrl}/healthz`).then(
    (response) => response.text(),
    (error) => `no answer (${error})`,
  );
}

const replacedInOrder = ['router-gateway', 'agent-gateway', 'router-worker', 'effect-worker'] as const;

/** Replaces every process by one of this build. @param between called between two of them */
export async function replaceServices(environment: Environment, between: (some: number) => Promise<void>): Promise<void> {
  for (const role of replacedInOrder) {
    for (const former of environment.cluster.running(role)) {
      await environment.add(role);
      await environment.end(former, 'SIGTERM');
      await between(5);
    }
  }
  for (const former of environment.hosts()) {
    await untilItOwns(environment, await environment.addHost());
    await environment.end(former, 'SIGTERM');
    await environment.everyPartitionOwned(former.name);
    await between(5);
  }
}

function brokerOf({ cluster: { brokers } }: Environment, index: number): Broker {
  const broker = brokers[index % brokers.length];
  if (broker === undefined) throw new Error('there are no brokers');
  return broker;
}

const sessionRecord = z.looseObject({ id: z.string() });

/** Resolves when conversations that begin now are answered. @throws when one is not, in the time of a client of the load */
async function workGoesOn({ client }: Environment, what: string, into = answeredAfterMs): Promise<void> {
  const fromMs = performance.now();
  const answered = await Promise.all(
    Array.from({ length: PROBES }, async (_, index) => {
      const { id } = sessionRecord.parse((await client.post('/sessions', {})).body);
      await client.post(`/sessions/${id}/events`, { kind: 'user_message', text: `probe ${index}`, idempotency_key: 'probe' });
      await eventually(
        async () => {
          const { status, body } = await client.get(`/sessions/${id}/events?kinds=assistant_message&wait_for_data=10`);
          return status === 200 && Array.isArray(body) && body.length > 0;
        },
        { timeoutMs: WHOLE_TIMEOUT_MS },
      );
      return Math.round(performance.now() - fromMs);
    }),
  );
  into.push({ what, first: Math.min(...answered), last: Math.max(...answered) });
}

/** Waits until each stream is at all brokers, up to date, and each broker says that it is healthy, as deploy/kubernetes waits before it replaces the next. */
async function allWhole({ cluster }: Environment): Promise<void> {
  await eventually(async () => (await Promise.all(cluster.brokers.map(isHealthy))).every(Boolean), { timeoutMs: WHOLE_TIMEOUT_MS });
  const { NATS_PASSWORD: pass = '' } = cluster.environmentOf('operator');
  const servers = cluster.brokers.map(({ url }) => url);
  const connection = await connect({ servers, user: 'operator', pass, inboxPrefix: '_INBOX.operator', maxReconnectAttempts: -1 });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const isWhole = async (name: string) => {
      const { cluster: group } = await manager.streams.info(name);
      const current = (group?.replicas ?? []).filter((replica) => replica.current && replica.offline !== true);
      return group?.leader !== undefined && current.length === cluster.brokers.length - 1;
    };
    await eventually(async () => (await Promise.all(Object.values(streams).map(({ name }) => isWhole(name)))).every(Boolean), { timeoutMs: WHOLE_TIMEOUT_MS });
  } finally {
    await connection.close();
  }
}
