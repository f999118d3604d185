import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../../scripts/servers/start-cluster.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { brokerInUse } from '../broker.mjs';
import { openCountingProxy } from './counting-proxy.mjs';
import { deploymentEnvironment } from './deployment-environment.mjs';

/** @typedef {import('../../scripts/servers/start-cluster.mjs').Role} Role */
/** @typedef {import('./deployment-environment.mjs').DeploymentOptions & { counts?: Partial<Record<Role, number>>, countQueries?: boolean, isBrokerSynced?: boolean, watchBroker?: boolean }} ClusterOptions `isBrokerSynced`: on each write, as deploy/ has it */

/**
 * Starts Switchyard as a cluster: one process of each service, on its own broker, database and cache. The database syncs commits to
 * disk. With `countQueries` the agent gateway reaches it through a proxy that counts its queries, and with `watchBroker` the broker has its monitoring.
 *
 * @param {ClusterOptions} options
 * @returns {Promise<import('./serve-target.mjs').Served>}
 */
export async function serveCluster({ counts = {}, countQueries = false, isBrokerSynced = true, watchBroker = false, ...deployment }) {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
  const { keys, environment, loopFile } = await deploymentEnvironment(folder, deployment);
  const configModule = new URL('../../dist/bus/nats/server-config.js', import.meta.url).href;
  /** @type {typeof import('../../bus/nats/server-config.ts')} */
  const { natsServerConfig } = await import(configModule);
  const monitor = watchBroker ? `127.0.0.1:${await freePort()}` : null;
  const cluster = await startCluster({
    counts: countQueries ? { ...counts, 'agent-gateway': 0 } : counts,
    environment,
    natsConfig: natsServerConfig({ monitor, syncAlways: isBrokerSynced && (await brokerInUse()).canSync }),
    durable: true,
    callerHandlesSignals: true,
    onLine: (line, { role, index }) => void (isInfo(line) || process.stderr.write(`${role}-${index} | ${line}\n`)),
  });
  const proxy = countQueries ? await openCountingProxy(cluster.stores.postgres.url) : null;
  if (proxy !== null) await cluster.add('agent-gateway', { DATABASE_URL: proxy.url });
  moveToLoad();

  const urlOf = (/** @type {Role} */ role) => cluster.processes.find((one) => one.role === role)?.url ?? '';
  const services = cluster.processes.map(({ role, index, pid }) => ({ name: index === 1 ? role : `${role}-${index}`, pid }));
  const stores = Object.entries(cluster.stores).map(([name, { pid }]) => ({ name, pid }));
  return {
    facts: {
      roots: [...services, ...stores],
      routerUrl: urlOf('router-gateway') || urlOf('router'),
      agentUrl: urlOf('agent-gateway') || urlOf('agent'),
      keys,
      databaseUrl: cluster.stores.postgres.url,
      ...(loopFile === undefined ? {} : { loopFile }),
      ...(monitor === null ? {} : { brokerUrl: `http://${monitor}` }),
      management: cluster.processes.map(({ role, managementUrl }) => ({ role, managementUrl })),
    },
    stop: async () => {
      await cluster.stop();
      proxy?.close();
      rmSync(folder, { recursive: true, force: true });
    },
    calls: {
      queries: () => proxy?.queries() ?? 0,
      signal: () => services.forEach(({ pid }) => void process.kill(pid, 'SIGUSR2')),
    },
  };
}

/** This process reads the log of all services: from here on beside the load, on the bench's own core. Processes that were started stay on theirs. */
function moveToLoad() {
  const core = process.env.BENCH_OWN_CORE;
  if (core !== undefined) execFileSync('taskset', ['-acp', core, String(process.pid)], { stdio: 'ignore' });
}

/** A line for each call: what it says is not read here. @param {string} line */
function isInfo(line) {
  return line.includes('"level":"info"');
}
