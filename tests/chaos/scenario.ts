import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type Environment, type NamedHost, TIMEOUT_MS } from './environment.ts';
import { checkAuditor, checkInvariants } from './invariants.ts';
import { beginLoad, type Load } from './load.ts';

/** Something that goes wrong, or changes, while the cluster is at work. */
export interface Fault {
  name: string;
  /**
   * How often it allows the same model call to be made again: once for each worker that is killed, and for each time that the broker
   * forgets what it had delivered.
   */
  extraCalls: number;
  /** Leaves the cluster with as many processes as it found. */
  inject(environment: Environment, load: Load): Promise<void>;
}

/** Bounds of the promise: a host that is killed is missed within the one, and one that leaves within the other. */
const FAIL_OVER_MS = 7_000;
const DRAIN_MS = 1_000;
/** What begins before each fault, so that it finds all sorts of work under way, and behind the last, so that the cluster is seen to go on. */
const UNDER_WAY = 30;
/** A fault comes at any moment of this. */
const SHORT_PAUSE_MS = 500;

/** Lets faults strike one after the other in the middle of a load, then holds all that was accepted against what is there. */
export async function underLoad(environment: Environment, faults: readonly Fault[]): Promise<void> {
  const load = beginLoad(environment);
  try {
    for (const { inject } of faults) {
      await load.more(UNDER_WAY);
      // No wait for anything: the moment of the fault is what the seed decides.
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

/** Kills a host and waits until others have what it had. @throws when that takes longer than is promised */
export async function killHost(environment: Environment, host: NamedHost): Promise<void> {
  await untilItOwns(environment, host);
  await environment.end(host, 'SIGKILL');
  await fellOver(environment, host);
}

/** Waits until others have what a host had that is dead. @throws when that takes longer than is promised */
export async function fellOver(environment: Environment, host: NamedHost): Promise<void> {
  const failOverMs = await untilOthersOwn(environment, host);
  environment.figures.longestFailOverMs = Math.max(environment.figures.longestFailOverMs, failOverMs);
  expect(failOverMs, 'a killed host was missed for too long').toBeLessThanOrEqual(FAIL_OVER_MS);
}

/** Asks a host to leave. @throws when others take longer to have what it had than is promised */
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

/** Adds a host and waits until it has its share. */
export async function joinHost(environment: Environment): Promise<NamedHost> {
  const host = await environment.addHost();
  await untilItOwns(environment, host);
  return host;
}

export async function untilItOwns({ auditor }: Environment, { name }: NamedHost): Promise<void> {
  await eventually(async () => (await auditor.ownedBy(name)) > 0, { timeoutMs: TIMEOUT_MS });
}
