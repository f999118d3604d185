import { cp, rm } from 'node:fs/promises';
import { expect } from 'vitest';
import type { Environment } from '../environment.ts';
import { checkInvariants } from '../invariants.ts';
import { beginLoad } from '../load.ts';
import type { Fault } from '../scenario.ts';

/** Work that begins between two faults of one store. */
const SOME = 30;

export const brokerRestarts: Fault = {
  name: 'the broker is restarted, and killed',
  extraCalls: 2,
  inject: async (environment, load) => {
    await restart(environment, 'nats', 'SIGTERM');
    await load.more(SOME);
    await restart(environment, 'nats', 'SIGKILL');
  },
};

export const databaseRestarts: Fault = {
  name: 'PostgreSQL is restarted, and killed',
  extraCalls: 0,
  inject: async (environment, load) => {
    await restart(environment, 'postgres', 'SIGINT');
    await load.more(SOME);
    await restart(environment, 'postgres', 'SIGQUIT');
  },
};

export const cacheKilled: Fault = {
  name: 'Redis is killed and comes back empty',
  extraCalls: 0,
  inject: async (environment, load) => {
    await environment.endStore('redis', 'SIGKILL');
    await load.more(SOME);
    await environment.cluster.redis.start();
  },
};

async function restart(environment: Environment, store: 'nats' | 'postgres', signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT' | 'SIGQUIT'): Promise<void> {
  await environment.endStore(store, signal);
  await environment.cluster[store].start();
}

/**
 * Restores an earlier copy of the broker's store under running owners. What the broker accepted since is lost, and its sequences are assigned
 * to other commands. What was applied stays; no later command is skipped.
 */
export async function rollBackBroker(environment: Environment): Promise<void> {
  const { nats } = environment.cluster;
  const copy = `${nats.folder}-copy`;
  const phase = async (retriesAccepted: boolean) => {
    const load = beginLoad(environment, { retriesAccepted });
    await load.more(SOME);
    // So that the work of one phase is done when the next begins.
    await checkInvariants(environment, await load.end(), { extraCalls: 0 });
  };
  await phase(false);
  await environment.endStore('nats', 'SIGTERM');
  await cp(nats.folder, copy, { recursive: true });
  await nats.start();
  await phase(false);
  await environment.endStore('nats', 'SIGTERM');
  await rm(nats.folder, { recursive: true });
  await cp(copy, nats.folder, { recursive: true });
  await rm(copy, { recursive: true });
  const before = environment.figures.rollBacksNoticed;
  await nats.start();
  await phase(true);
  expect(environment.figures.rollBacksNoticed, 'no owner saw that the log had been rolled back').toBeGreaterThan(before);
}
