import { afterAll } from 'vitest';
import { natsServerConfig } from '../../bus/nats/server-config.ts';
import { type ClusterProcess, type Role, type Cluster as Running, startCluster as start } from '../../scripts/servers/start-cluster.mjs';
import { builtInRouter } from '../../services/standalone/built-in-router.ts';
import { newKeys, withKeys } from '../../services/standalone/keys.ts';
import { plainEnvironment, root } from './run-program.ts';

export interface Cluster {
  /** Of the router gateways that run. */
  routerUrls: string[];
  /** Of the agent gateways that run. */
  agentUrls: string[];
  keys: { routerKey: string; agentKey: string };
  /** All that were ever started, those that have ended included. */
  processes: ClusterProcess[];
  /** The processes of a role that run, in the order in which they were started. */
  running(role: Role): ClusterProcess[];
  /** Starts one more process of a role and resolves when it is ready. @param folder whose `dist/` it runs, where it is not the clone's */
  add(role: Role, env?: Record<string, string>, folder?: string): Promise<ClusterProcess>;
  /** What a process of a role, or the operator's command line, is started with. */
  environmentOf(user: Role | 'operator'): Record<string, string | undefined>;
  nats: Running['stores']['nats'];
  postgres: Running['stores']['postgres'];
  redis: Running['stores']['redis'];
  /** What all processes have printed last, for the message of a test that fails. */
  output(): string;
  /** Stops everything in order. */
  stop(): Promise<void>;
}

interface ClusterOptions {
  /** How many of each; one where nothing is said. */
  roles?: Partial<Record<Role, number>>;
  /** Settings of every process, on top of an environment without any. */
  env?: Record<string, string>;
  /** Each line that a process prints. */
  onLine?: (line: string) => void;
}

const running = new Set<Running>();
// Registered when a test file imports this one, so it runs after that file's own hooks.
afterAll(async () => {
  await Promise.all([...running].map((cluster) => cluster.kill()));
});

/**
 * Starts every service as processes of its own on servers of its own, on the sample agent and, unless ROUTER_CONFIG names a file, the scripted
 * model, and waits until all are ready. What is still running when the test file ends is killed.
 */
export async function startCluster({ roles = {}, env = {}, onLine }: ClusterOptions = {}): Promise<Cluster> {
  const keys = newKeys(env);
  const cluster = await start({
    counts: roles,
    ...(onLine === undefined ? {} : { onLine }),
    natsConfig: natsServerConfig(),
    ...(env.ROUTER_CONFIG === undefined ? { routerConfig: builtInRouter({ openAi: null }) } : {}),
    environment: {
      ...withKeys(plainEnvironment(), keys),
      HOUSE_SECRET: keys.houseSecret,
      MANIFEST: `${root}examples/acme-support/manifest.yaml`,
      SCRIPTED_WORDS_PER_SECOND: '0',
      ...env,
    },
  });
  running.add(cluster);
  const live = (role: Role) => cluster.processes.filter((one) => one.role === role && !one.hasExited()).sort((one, other) => one.index - other.index);
  const urlsOf = (role: Role) => live(role).flatMap(({ url }) => (url === null ? [] : [url]));
  return {
    get routerUrls() {
      return urlsOf('router-gateway');
    },
    get agentUrls() {
      return urlsOf('agent-gateway');
    },
    keys,
    processes: cluster.processes,
    running: live,
    add: cluster.add,
    environmentOf: cluster.environmentOf,
    ...cluster.stores,
    output: () => cluster.processes.map((one) => `--- ${one.role}-${one.index}\n${one.output()}`).join('\n'),
    stop: async () => {
      await cluster.stop();
      running.delete(cluster);
    },
  };
}
