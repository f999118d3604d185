import { eventually } from '../../helpers/eventually.ts';
import { type Environment, TIMEOUT_MS } from '../environment.ts';
import { drainHost, type Fault, joinHost, killHost, oneOf } from '../scenario.ts';

/** Work at the new process before it is killed. */
const UNDER_WAY = 30;

type OtherRole = 'router-worker' | 'effect-worker' | 'agent-gateway' | 'router-gateway';

export const hostKilled: Fault = {
  name: 'an actor host is killed',
  extraCalls: 0,
  inject: async (environment) => {
    await killHost(environment, oneOf(environment, environment.hosts()));
    await joinHost(environment);
  },
};

export const agentServerKilled: Fault = {
  name: 'an agent gateway and an actor host in one process are killed',
  extraCalls: 0,
  inject: async (environment, load) => {
    const both = await joinHost(environment, 'agent');
    await load.more(UNDER_WAY);
    await killHost(environment, both);
  },
};

export const routerWorkerKilled: Fault = {
  name: 'a router worker is killed in the middle of streams and turns',
  extraCalls: 1,
  inject: async (environment) => {
    await eventually(() => environment.model.inFlight > 1, { timeoutMs: TIMEOUT_MS });
    await replace(environment, 'router-worker', 'SIGKILL');
  },
};

export const effectWorkerKilled: Fault = {
  name: 'an effect worker is killed in the middle of a tool call',
  extraCalls: 0,
  inject: async (environment) => {
    await eventually(() => environment.tools.inFlight > 0, { timeoutMs: TIMEOUT_MS });
    await replace(environment, 'effect-worker', 'SIGKILL');
  },
};

export const gatewaysKilled: Fault = {
  name: 'gateways are killed in the middle of streams and long-polls',
  extraCalls: 0,
  inject: async (environment) => {
    await replace(environment, 'router-gateway', 'SIGKILL');
    await replace(environment, 'agent-gateway', 'SIGKILL');
  },
};

export const hostsChange: Fault = {
  name: 'a host joins, and another leaves',
  extraCalls: 0,
  inject: async (environment) => {
    const leaver = oneOf(environment, environment.hosts());
    await joinHost(environment);
    await drainHost(environment, leaver);
  },
};

export const othersLeave: Fault = {
  name: 'one of each other role is asked to end during turns',
  extraCalls: 0,
  inject: async (environment) => {
    for (const role of ['router-worker', 'effect-worker', 'agent-gateway', 'router-gateway'] as const) await replace(environment, role, 'SIGTERM');
  },
};

/** Adds a process of a role and ends another. */
async function replace(environment: Environment, role: OtherRole, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const victim = oneOf(environment, environment.cluster.running(role));
  // A draining process has a successor by then; a killed one has none.
  if (signal === 'SIGTERM') await environment.add(role);
  await environment.end(victim, signal);
  if (signal === 'SIGKILL') await environment.add(role);
}
