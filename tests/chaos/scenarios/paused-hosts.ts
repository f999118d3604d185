import { eventually } from '../../helpers/eventually.ts';
import { type NamedHost, PATIENCE_MS, type World } from '../environment.ts';
import { checkWitness } from '../invariants.ts';
import { drainHost, type Fault, fellOver, oneOf, untilItOwns } from '../scenario.ts';

/** How many commits a host makes before the one that it stops at. */
const COMMITS_BEFORE = 25;

export const hostSleeps: Fault = {
  name: 'a host sleeps until it counts as dead, and wakes',
  extraCalls: 0,
  strike: async (world) => {
    const host = oneOf(world, world.hosts());
    await untilItOwns(world, host);
    host.signal('SIGSTOP');
    await wakeLate(world, host);
  },
};

/** @param folder of the program that the host runs, where it is not the clone's */
export function hostSleepsOverCommit(folder?: string): Fault {
  return {
    name: 'a host falls asleep over a commit, and sends it when others own its partitions',
    extraCalls: 0,
    strike: async (world) => {
      const host = await world.addHost({ FAIL_POINT: `commit.sending:stop:${COMMITS_BEFORE}` }, folder);
      await eventually(() => host.output().includes('fail point commit.sending: SIGSTOP'), { timeoutMs: PATIENCE_MS });
      await wakeLate(world, host);
      // With the fence in its place it is rejected; without, it is accepted from somebody who is not the owner.
      await eventually(async () => (await world.witness.rejected(host.name)) + (await world.witness.zombieCommits()) > 0, { timeoutMs: PATIENCE_MS });
      await checkWitness(world);
      await drainHost(world, host);
    },
  };
}

export const noticesLost: Fault = {
  name: 'a host is killed between a commit and the notices of it',
  extraCalls: 0,
  strike: async (world) => {
    const host = await world.addHost({ FAIL_POINT: `commit.stored:kill:${COMMITS_BEFORE}` });
    await host.exited;
    const { figures, witness } = world;
    figures.kills['actor-host'] = (figures.kills['actor-host'] ?? 0) + 1;
    // Who polls for them waits. Every conversation goes on all the same: the load fails if one does not.
    figures.noticesLost += (await witness.lastEventsOf(host.name)).length;
    await fellOver(world, host);
  },
};

/** Waits until others have what it had, and wakes it; then until it has its share again. */
async function wakeLate(world: World, host: NamedHost): Promise<void> {
  await world.everyPartitionOwned(host.name);
  host.signal('SIGCONT');
  await untilItOwns(world, host);
}
