import { afterAll, inject } from 'vitest';
import { natsServerConfig } from '../../bus/nats/server-config.ts';
import { type ClusterProcess, type Relay, type Role, type Cluster as Running, startCluster as start } from '../../scripts/servers/start-cluster.mjs';
import type { StoreTls } from '../../scripts/servers/stores.mjs';
import { builtInRouter } from '../../services/standalone/built-in-router.ts';
import { newKeys, withKeys } from '../../services/standalone/keys.ts';
import { plainEnvironment, root } from './run-program.ts';

export interface Cluster {
  /** Of the running router gateways, those beside a worker in one process included. */
  routerUrls: string[];
  /** Of the running agent gateways, those beside a host in one process included. */
  agentUrls: string[];
  keys: { routerKey: string; managementKey: string; agentKey: string };
  /** All processes ever started, including those that have ended. */
  processes: ClusterProcess[];
  /** The running processes of a role, in the order of their starts. */
  running(role: Role): ClusterProcess[];
  /** Starts one more process of a role and resolves when it is ready. @param folder the folder of another `dist/` to run */
  add(role: Role, env?: Record<string, string>, folder?: string): Promise<ClusterProcess>;
  /** The environment of a process of a role, or of the operator's command line. */
  environmentOf(user: Role | 'operator'): Record<string, string | undefined>;
  nats: Running['stores']['nats'];
  brokers: Running['brokers'];
  postgres: Running['stores']['postgres'];
  redis: Running['stores']['redis'];
  /** The last output of all processes, for the message of a failing test. */
  output(): string;
  /** Drains all processes, then ends the servers. */
  stop(): Promise<void>;
}

interface ClusterOptions {
  /** Number of processes per role; by default one, and no `router` and no `agent`. */
  roles?: Partial<Record<Role, number>>;
  /** Settings of every process, added to an environment without any. */
  env?: Record<string, string>;
  /** Each line that a process prints. */
  onLine?: (line: string, of: { role: Role; index: number }) => void;
  /** Servers of the broker's cluster, each with all streams; by default a single server. */
  brokers?: number;
  /** Between these servers, and from the services to them; by default they connect directly. */
  relay?: Relay | undefined;
  /** Of PostgreSQL and Redis; by default they require none. */
  storePassword?: string;
  /** The stores admit connections over TLS only; NODE_EXTRA_CA_CERTS in `env` names the authority's file. */
  tls?: StoreTls;
  /** Whether the services find an empty database, which they migrate; by default a migrated one, unless the stores have a password or TLS. */
  isFirstStart?: boolean;
  /** Of the broker, in the server's own syntax; by default one with the users of the services. */
  natsConfig?: string;
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
export async function startCluster({
  roles = {},
  env = {},
  onLine,
  brokers = 1,
  relay,
  storePassword,
  tls,
  isFirstStart = storePassword !== undefined || tls !== undefined,
  natsConfig = natsServerConfig(),
}: ClusterOptions = {}): Promise<Cluster> {
  const keys = newKeys(env);
  const cluster = await start({
    counts: roles,
    ...(onLine === undefined ? {} : { onLine }),
    ...(storePassword === undefined ? {} : { storePassword }),
    ...(tls === undefined ? {} : { tls }),
    ...(isFirstStart ? {} : { postgresTemplate: inject('postgresTemplate') }),
    natsConfig,
    brokers,
    relay,
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
      return [...urlsOf('router-gateway'), ...urlsOf('router')];
    },
    get agentUrls() {
      return [...urlsOf('agent-gateway'), ...urlsOf('agent')];
    },
    keys,
    processes: cluster.processes,
    running: live,
    add: cluster.add,
    environmentOf: cluster.environmentOf,
    ...cluster.stores,
    brokers: cluster.brokers,
    output: () => cluster.processes.map((one) => `--- ${one.role}-${one.index}\n${one.output()}`).join('\n'),
    stop: async () => {
      await cluster.stop();
      running.delete(cluster);
    },
  };
}
