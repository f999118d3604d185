import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { z } from 'zod';
import { streams } from '../../../bus/nats/streams.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { Environment } from '../environment.ts';
import { type Fault, untilItOwns } from '../scenario.ts';

/** Elections take up to 9 s, a replica that has nothing copies its streams, and the machine may be busy. */
const WHOLE_TIMEOUT_MS = 120_000;
/** Conversations that begin as a broker is lost: enough for partitions with a consumer at each of the brokers. */
const PROBES = 8;
const EVERY_MS = 20_000;

type Broker = Environment['cluster']['brokers'][number];

/** How long after each loss all of the conversations that began with it were answered, in milliseconds. */
export const answeredAfterMs: { first: number; last: number }[] = [];

/** A broker every 20 s, each of them in turn, which is started again once work has gone on. */
export function brokersKilledInTurn(rounds: number): Fault {
  return {
    name: `one of three brokers is killed every ${EVERY_MS / 1_000} s`,
    // Work in flight at a lost broker may be delivered again.
    extraCalls: rounds,
    inject: async (environment) => {
      for (let round = 0; round < rounds; round += 1) {
        const [broker, next] = [brokerOf(environment, round), delay(EVERY_MS)];
        await broker.kill();
        await workGoesOn(environment);
        await broker.start();
        await allWhole(environment);
        await next;
      }
    },
  };
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
async function workGoesOn({ client }: Environment): Promise<void> {
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
  answeredAfterMs.push({ first: Math.min(...answered), last: Math.max(...answered) });
}

/** Waits until each stream is at all brokers, up to date. */
async function allWhole({ cluster }: Environment): Promise<void> {
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
