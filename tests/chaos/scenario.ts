import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type Environment, type HostRole, type NamedHost, TIMEOUT_MS } from './environment.ts';
import { checkAuditor, checkInvariants } from './invariants.ts';
import { beginLoad, type Load } from './load.ts';

/** A fault or a change of the cluster under load. */
export interface Fault {
  name: string;
  /**
   * How often it allows the same model call to be repeated: once for each worker that is killed, and for each time that the broker loses its
   * state of deliveries.
   */
  extraCalls: number;
  /** Leaves the number of processes as it was. */
  inject(environment: Environment, load: Load): Promise<void>;
}

/** For a busy machine. The measured times, 5 to 7 s on an idle one, are printed. */
const FAIL_OVER_MS = 20_000;
/** Less than others take to miss a host: it has released its partitions. On an idle machine it takes less than 1 s. */
const DRAIN_MS = 4_500;
/** Work that begins before each fault, so that all kinds are in flight, and after the last, which shows that the cluster goes on. */
const UNDER_WAY = 30;
/** A fault is injected at a random moment of this. */
const SHORT_PAUSE_MS = 500;

/** Injects faults one after the other under a load, then compares all that was accepted with what is stored. */
export async function underLoad(environment: Environment, faults: readonly Fault[]): Promise<void> {
  const load = beginLoad(environment);
  try {
    for (const { inject } of faults) {
      await load.more(UNDER_WAY);
      // A plain wait: the seed decides the moment of the fault.
      await delay(environment.random() * SHORT_PAUSE_MS);
      await inject(environment, load);
    }
    await checkAuditor(environment);
    await load.more(UNDER_WAY);
  } catch (error) {
    load.abandon();
    throw error;
  }
  const extraCalls = faults.reduce((sum, fault) => sum + fault.extraCalls, 0);
  await checkInvariants(environment, await load.end(), { extraCalls });
}

/** One of several, by the seed. */
export function oneOf<Item>(environment: Environment, items: readonly Item[]): Item {
  const item = items[Math.floor(environment.random() * items.length)];
  if (item === undefined) throw new Error('there is none left');
  return item;
}

/** Kills a host and waits for the take-over. @throws when that takes too long */
export async function killHost(environment: Environment, host: NamedHost): Promise<void> {
  await untilItOwns(environment, host);
  await environment.end(host, 'SIGKILL');
  await fellOver(environment, host);
}

/** Waits until other hosts own the partitions of a killed one. @throws when that takes too long */
export async function fellOver(environment: Environment, host: NamedHost): Promise<void> {
  const failOverMs = await untilOthersOwn(environment, host);
  environment.figures.longestFailOverMs = Math.max(environment.figures.longestFailOverMs, failOverMs);
  expect(failOverMs, 'a killed host was missed for too long').toBeLessThanOrEqual(FAIL_OVER_MS);
}

/** Drains a host. @throws when the others would have missed it by then */
export async function drainHost(environment: Environment, host: NamedHost): Promise<void> {
  await environment.end(host, 'SIGTERM');
  const drainMs = await untilOthersOwn(environment, host);
  environment.figures.longestDrainMs = Math.max(environment.figures.longestDrainMs, drainMs);
  expect(drainMs, 'a host that left was missed for too long').toBeLessThanOrEqual(DRAIN_MS);
}

async function untilOthersOwn(environment: Environment, { name }: NamedHost): Promise<number> {
  const fromMs = performance.now();
  await environment.everyPartitionOwned(name);
  return performance.now() - fromMs;
}

/** Adds a host and waits until it owns its share. */
export async function joinHost(environment: Environment, role: HostRole = 'actor-host'): Promise<NamedHost> {
  const host = await environment.addHost({}, undefined, role);
  await untilItOwns(environment, host);
  return host;
}

export async function untilItOwns({ auditor }: Environment, { name }: NamedHost): Promise<void> {
  await eventually(async () => (await auditor.ownedBy(name)) > 0, { timeoutMs: TIMEOUT_MS });
}
