import { eventually } from '../../helpers/eventually.ts';
import { PATIENCE_MS, type World } from '../environment.ts';
import { drainHost, type Fault, joinHost, killHost, oneOf } from '../scenario.ts';

type OtherRole = 'router-worker' | 'effect-worker' | 'agent-gateway' | 'router-gateway';

export const hostKilled: Fault = {
  name: 'an actor host is killed',
  extraCalls: 0,
  strike: async (world) => {
    await killHost(world, oneOf(world, world.hosts()));
    await joinHost(world);
  },
};

export const routerWorkerKilled: Fault = {
  name: 'a router worker is killed in the middle of streams and turns',
  extraCalls: 1,
  strike: async (world) => {
    await eventually(() => world.model.inHand > 1, { timeoutMs: PATIENCE_MS });
    await replace(world, 'router-worker', 'SIGKILL');
  },
};

export const effectWorkerKilled: Fault = {
  name: 'an effect worker is killed in the middle of a tool call',
  extraCalls: 0,
  strike: async (world) => {
    await eventually(() => world.tools.inHand > 0, { timeoutMs: PATIENCE_MS });
    await replace(world, 'effect-worker', 'SIGKILL');
  },
};

export const gatewaysKilled: Fault = {
  name: 'gateways are killed in the middle of streams and long-polls',
  extraCalls: 0,
  strike: async (world) => {
    await replace(world, 'router-gateway', 'SIGKILL');
    await replace(world, 'agent-gateway', 'SIGKILL');
  },
};

export const hostsChange: Fault = {
  name: 'a host joins, and another leaves',
  extraCalls: 0,
  strike: async (world) => {
    const leaver = oneOf(world, world.hosts());
    await joinHost(world);
    await drainHost(world, leaver);
  },
};

export const othersLeave: Fault = {
  name: 'one of each other role is asked to end during turns',
  extraCalls: 0,
  strike: async (world) => {
    for (const role of ['router-worker', 'effect-worker', 'agent-gateway', 'router-gateway'] as const) await replace(world, role, 'SIGTERM');
  },
};

/** One more of a role, and one that is there ends. */
async function replace(world: World, role: OtherRole, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const victim = oneOf(world, world.cluster.running(role));
  // Who is asked to end has a successor by then; who is killed has none.
  if (signal === 'SIGTERM') await world.add(role);
  await world.end(victim, signal);
  if (signal === 'SIGKILL') await world.add(role);
}
