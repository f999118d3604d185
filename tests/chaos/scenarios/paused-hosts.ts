import { eventually } from '../../helpers/eventually.ts';
import { type Environment, type NamedHost, TIMEOUT_MS } from '../environment.ts';
import { checkAuditor } from '../invariants.ts';
import { drainHost, type Fault, fellOver, oneOf, untilItOwns } from '../scenario.ts';

/** Commits of the host before the one at which it is paused. */
const COMMITS_BEFORE = 25;

export const hostPaused: Fault = {
  name: 'a host is paused until it counts as dead, and resumes',
  extraCalls: 0,
  inject: async (environment) => {
    const host = oneOf(environment, environment.hosts());
    await untilItOwns(environment, host);
    host.signal('SIGSTOP');
    await wakeLate(environment, host);
  },
};

/** @param folder the folder of another `dist/` to run */
export function hostPausedAtCommit(folder?: string): Fault {
  return {
    name: 'a host falls asleep over a commit, and sends it when others own its partitions',
    extraCalls: 0,
    inject: async (environment) => {
      const host = await environment.addHost({ FAIL_POINT: `commit.sending:stop:${COMMITS_BEFORE}` }, folder);
      await eventually(() => host.output().includes('fail point commit.sending: SIGSTOP'), { timeoutMs: TIMEOUT_MS });
      await wakeLate(environment, host);
      // With fencing it is rejected; without, it is accepted although the host is not the owner.
      await eventually(async () => (await environment.auditor.rejected(host.name)) + (await environment.auditor.zombieCommits()) > 0, {
        timeoutMs: TIMEOUT_MS,
      });
      await checkAuditor(environment);
      await drainHost(environment, host);
    },
  };
}

export const noticesLost: Fault = {
  name: 'a host is killed between a commit and the notices of it',
  extraCalls: 0,
  inject: async (environment) => {
    const host = await environment.addHost({ FAIL_POINT: `commit.stored:kill:${COMMITS_BEFORE}` });
    await host.exited;
    const { figures, auditor } = environment;
    figures.kills['actor-host'] = (figures.kills['actor-host'] ?? 0) + 1;
    // Long-polls wait for them. Every conversation goes on all the same: the load fails if one does not.
    figures.noticesLost += (await auditor.lastEventsOf(host.name)).length;
    await fellOver(environment, host);
  },
};

/** Waits for the take-over, resumes the host, and waits until it owns its share again. */
async function wakeLate(environment: Environment, host: NamedHost): Promise<void> {
  await environment.everyPartitionOwned(host.name);
  host.signal('SIGCONT');
  await untilItOwns(environment, host);
}
