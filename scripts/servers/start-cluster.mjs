import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ScriptError } from '../run-script.mjs';
import { ensurePrograms } from './programs.mjs';
import { natsClusterPings, openNats, openPostgres, openRedis } from './stores.mjs';
import { closeRun, hasEnded, launch, makeFolder, openRun } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/**
 * In stopping order: gateways, hosts with turns in flight, then the workers that these need. `agent` is a gateway and a host. `router` is a gateway and a
 * worker: hosts need it too.
 */
export const roles = /** @type {const} */ (['router-gateway', 'agent-gateway', 'agent', 'actor-host', 'router', 'router-worker', 'effect-worker']);

/** Started by default: one of each. `router` and `agent` are each in place of two of them. @type {ReadonlySet<string>} */
const byDefault = new Set(['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker']);

/** Flags of V8, before the program of a role, as in the compose file. @param {string} role @returns {string[]} */
export function heapArgumentsOf(role) {
  return withFullYoungGeneration.has(role) ? ['--min-semi-space-size=16'] : [];
}

/** @param {typeof roles[number]} role */
export function defaultCountOf(role) {
  return byDefault.has(role) ? 1 : 0;
}

/** Workers can't tag requests (docs/adr/0025). @type {ReadonlySet<string>} */
const withoutSecret = new Set(['router-worker', 'effect-worker']);

/** @typedef {typeof roles[number]} Role */
/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/** @typedef {import('./stores.mjs').Store} Store */
/**
 * @typedef {Store & { folder: string, monitorUrl: string | null, servicesUrl: string }} Broker `folder` of its streams; `monitorUrl` of a server of a
 *   cluster; `servicesUrl` is how services reach it
 */
/** @typedef {(from: number | 'services', to: number, port: number) => Promise<number>} Relay opens a proxy to a broker's port; brokers by index */

/**
 * @typedef {object} ClusterProcess
 * @property {Role} role
 * @property {number} index from 1, within the role
 * @property {number} pid
 * @property {string | null} url of its public port; null without one
 * @property {string} managementUrl
 * @property {() => string} output the end of stdout and stderr
 * @property {(name: NodeJS.Signals) => void} signal
 * @property {Promise<{ code: number | null, signal: NodeJS.Signals | null }>} exited
 * @property {() => boolean} hasExited
 */

/**
 * @typedef {object} Cluster
 * @property {ClusterProcess[]} processes all that were started, exited ones included
 * @property {{ nats: Broker, postgres: Store, redis: Store }} stores `nats` is the first of the brokers
 * @property {Broker[]} brokers of one cluster, or one
 * @property {(role: Role, env?: Record<string, string>, folder?: string) => Promise<ClusterProcess>} add starts one more process of a role, from
 *   the `dist/` of another folder if given
 * @property {(user: Role | 'operator') => Record<string, string | undefined>} environmentOf the environment of a role's processes, or the
 * operator's
 * @property {(name: string) => string} makeFolder creates a folder that is removed with the cluster
 * @property {() => Promise<void>} stop drains the processes in order, ends the stores, and removes all files
 * @property {() => Promise<void>} kill the same without draining
 */

/**
 * @typedef {object} ClusterOptions
 * @property {Partial<Record<Role, number>>} counts processes per role; absent: `defaultCountOf`
 * @property {Record<string, string | undefined>} environment of every process, including the keys and the paths of the agent's and the router's
 * files
 * @property {string} natsConfig with `$NATS_PASSWORD_<SERVICE>` for the passwords
 * @property {unknown} [routerConfig] instead of a file that ROUTER_CONFIG names
 * @property {number} [brokers] servers of one cluster, each with all streams; by default a single server
 * @property {Relay | undefined} [relay] between the brokers, and from the services to them; by default they connect directly
 * @property {string} [storePassword] of PostgreSQL and Redis; absent: they require none
 * @property {import('./stores.mjs').StoreTls} [tls] the stores admit connections over TLS only; the processes need NODE_EXTRA_CA_CERTS
 * @property {string | undefined} [postgresTemplate] data folder of a stopped PostgreSQL without a password, which is copied; by default the
 * services find an empty database
 * @property {boolean} [durable] whether PostgreSQL syncs commits to disk, as in production
 * @property {boolean} [callerHandlesSignals] the caller handles signals itself
 * @property {(line: string, of: { role: Role, index: number }) => void} [onLine] called for each line that a process prints
 * @property {(started: ClusterProcess) => void} [onProcess] called for each process once it is ready
 * @property {(line: string) => void} [print] gets a line when programs have to be installed
 */

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
/** Each call passes through them: their young generation starts at its full size (docs/adr/0022). That of other roles grows with their load (docs/adr/0156). @type {ReadonlySet<string>} */
const withFullYoungGeneration = new Set(['router-gateway', 'router-worker', 'router']);
/** A slow start prints every 5 s what it waits for, so a silent process makes no progress, however busy the machine is. */
const SILENCE_LIMIT_MS = 90_000;
const POLL_MS = 20;
/** As in deploy/kubernetes: the shortest that nats-server allows. */
const LAME_DUCK = 'lame_duck_duration: "30s"\nlame_duck_grace_period: "5s"';
/** Nothing listens there. */
const NOWHERE = '127.0.0.1:1';
/** Of a cluster, until its servers have elected a leader. */
const ELECTION_BUDGET_MS = 60_000;
/** Of the output of each of its servers, in an error. */
const MAX_BROKER_CHARS = 2_000;
/** Beyond the drain. */
const STOP_MARGIN_MS = 15_000;
const DEFAULT_DRAIN_SECONDS = 120;

/**
 * Starts NATS, PostgreSQL and Redis on free ports, and all service processes on them. Needs a build in dist/.
 *
 * @param {ClusterOptions} options
 * @returns {Promise<Cluster>} once every process is ready
 * @throws {ScriptError} with the output of the first process that did not become ready; nothing is left running then
 */
export async function startCluster(options) {
  const {
    counts,
    environment,
    natsConfig,
    brokers: brokerCount = 1,
    relay,
    storePassword,
    tls,
    postgresTemplate,
    durable = false,
    callerHandlesSignals = false,
    print = () => {},
  } = options;
  const passwords = passwordsFor(natsConfig);
  const programs = await ensurePrograms(['nats', 'redis', 'postgresBin'], { purpose: 'A cluster runs on the real servers', print });
  const run = await openRun({ callerHandlesSignals });
  /** @type {ClusterProcess[]} */
  const processes = [];
  const stop = async () => {
    await stopProcesses(processes, Number(environment.SHUTDOWN_DRAIN_TIMEOUT_SECONDS || DEFAULT_DRAIN_SECONDS));
    await closeRun(run);
  };
  const kill = async () => {
    for (const one of processes) one.signal('SIGKILL');
    await closeRun(run);
  };
  try {
    const [brokers, postgres, redis] = await Promise.all([
      openBrokers(run, brokerCount, { program: programs.nats, config: natsConfig, env: passwords, tls }, relay),
      openPostgres(run, { bin: programs.postgresBin, durable, password: storePassword, tls, template: postgresTemplate }),
      openRedis(run, { program: programs.redis, password: storePassword, tls }),
    ]);
    const [nats] = brokers;
    const broker = { NATS_URL: brokers.map(({ servicesUrl }) => servicesUrl).join(','), NATS_REPLICAS: String(brokers.length) };
    const { NODE_EXTRA_CA_CERTS } = environment;
    await declareStreams(run, { ...broker, NODE_EXTRA_CA_CERTS, NATS_PASSWORD: passwords[passwordVariableOf('operator')] }, brokers);
    const routerConfig = options.routerConfig === undefined ? {} : { ROUTER_CONFIG: writeRouterConfig(run, options.routerConfig) };
    const ready = makeFolder(run, 'ready');
    /** @type {Cluster['environmentOf']} */
    const environmentOf = (user) => ({
      ...environment,
      ...routerConfig,
      HOUSE_SECRET: withoutSecret.has(user) ? undefined : environment.HOUSE_SECRET,
      ...broker,
      NATS_PASSWORD: passwords[passwordVariableOf(user)],
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      HOST: '127.0.0.1',
      PORT: '0',
      MANAGEMENT_HOST: '127.0.0.1',
      MANAGEMENT_PORT: '0',
    });
    /** Processes started per role so far. @type {Map<Role, number>} */
    const started = new Map();
    /** @type {Cluster['add']} */
    const add = async (role, env = {}, folder = CLONE) => {
      const index = (started.get(role) ?? 0) + 1;
      started.set(role, index);
      const own = { SWITCHYARD_READY_FILE: join(ready, `${role}-${index}`), ...env };
      // Programs of this package work in the folder in which it was started, from which relative paths of settings count.
      const cwd = folder === CLONE ? process.cwd() : folder;
      const one = await startProcess(run, { role, index, program: folder, cwd, env: { ...environmentOf(role), ...own }, onLine: options.onLine });
      processes.push(one);
      options.onProcess?.(one);
      return one;
    };
    // All at once: no process may depend on the starting order.
    await Promise.all(roles.flatMap((role) => Array.from({ length: counts[role] ?? defaultCountOf(role) }, () => add(role))));
    return { processes, stores: { nats, postgres, redis }, brokers, add, environmentOf, makeFolder: (name) => makeFolder(run, name), stop, kill };
  } catch (error) {
    await kill();
    throw error;
  }
}

/**
 * A random password per user of the broker, by variable. It begins with a letter, since the server would parse digits as a number.
 *
 * @param {string} natsConfig
 * @returns {Record<string, string>}
 * @throws {ScriptError} when a service, or the operator's command line, has no user there
 */
function passwordsFor(natsConfig) {
  const named = new Set([...natsConfig.matchAll(/\$(NATS_PASSWORD_[A-Z_]+)/g)].map(([, name]) => name ?? ''));
  const missing = [...roles, 'operator'].map(passwordVariableOf).filter((name) => !named.has(name));
  if (missing.length > 0) throw new ScriptError(`The configuration of NATS has no user with the password ${missing.join(', ')}.`);
  return Object.fromEntries([...named].map((name) => [name, `p${randomBytes(16).toString('hex')}`]));
}

/**
 * A single server, or the servers of a cluster.
 *
 * @param {TestRun} run
 * @param {number} count
 * @param {import('./stores.mjs').NatsOptions & { config: string }} options
 * @param {Relay} [relay]
 * @returns {Promise<[Broker, ...Broker[]]>}
 */
async function openBrokers(run, count, options, relay) {
  if (count === 1) {
    const single = await openNats(run, options);
    return [Object.assign(single, { monitorUrl: null, servicesUrl: single.url })];
  }
  const routes = await Promise.all(Array.from({ length: count }, freePort));
  const servers = routes.map(async (route, index) => {
    const [port, monitor] = [await freePort(), await freePort()];
    const others = routes.flatMap((to, other) => (other === index ? [] : [relay === undefined ? to : relay(index, other, to)]));
    const routeUrls = (await Promise.all(others)).map((to) => `nats://127.0.0.1:${to}`);
    const servicesPort = relay === undefined ? port : await relay('services', index, port);
    const relayed =
      relay === undefined
        ? { settings: [], cluster: '' }
        : // What it tells others of itself: no server and no client may connect to it past the relay.
          { settings: [`client_advertise: "127.0.0.1:${servicesPort}"`], cluster: `advertise: "${NOWHERE}", ` };
    const config = [
      options.config,
      `server_name: broker-${index}`,
      `http: "127.0.0.1:${monitor}"`,
      ...relayed.settings,
      LAME_DUCK,
      ...natsClusterPings,
      `cluster { name: test, listen: "127.0.0.1:${route}", ${relayed.cluster}routes: [${routeUrls.join(',')}] }`,
    ];
    const server = await openNats(run, { ...options, config: `${config.join('\n')}\n`, name: `broker-${index}`, port });
    return Object.assign(server, { monitorUrl: `http://127.0.0.1:${monitor}`, servicesUrl: server.url.replace(`:${port}`, `:${servicesPort}`) });
  });
  return /** @type {[Broker, ...Broker[]]} */ (await Promise.all(servers));
}

/** @param {string} user */
function passwordVariableOf(user) {
  return `NATS_PASSWORD_${user.toUpperCase().replaceAll('-', '_')}`;
}

/**
 * Declares the broker's streams, which a release requires before its processes start (docs/deploy.md).
 *
 * @param {TestRun} run
 * @param {NodeJS.ProcessEnv} env
 * @param {readonly Broker[]} brokers several of them refuse until they have a leader
 */
async function declareStreams(run, env, brokers) {
  const untilMs = performance.now() + (brokers.length > 1 ? ELECTION_BUDGET_MS : 0);
  for (;;) {
    const { child, output } = launch(run, { program: process.execPath, args: [join('dist', 'services', 'operator', 'main.js'), 'streams'], cwd: CLONE, env });
    const [code, signal] = await once(child, 'close');
    if (code === 0) return;
    if (performance.now() < untilMs) continue;
    const printed = brokers.map((broker) => broker.output().slice(-MAX_BROKER_CHARS)).join('\n');
    throw new ScriptError(
      `The broker's streams could not be declared: the operator ended with ${signal ?? code}; it printed:\n${output()}\nThe broker printed:\n${printed}`,
    );
  }
}

/** @param {TestRun} run @param {unknown} config */
function writeRouterConfig(run, config) {
  const path = join(makeFolder(run, 'router'), 'router.json');
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/**
 * @param {TestRun} run
 * @param {{ role: Role, index: number, program?: string, cwd: string, env: NodeJS.ProcessEnv, onLine?: ClusterOptions['onLine'], silenceLimitMs?: number }} what
 * @returns {Promise<ClusterProcess>} once it is ready
 * @throws {ScriptError} naming it, when it ends before that, or prints nothing for too long
 */
export async function startProcess(run, { role, index, cwd, program = cwd, env, onLine, silenceLimitMs = SILENCE_LIMIT_MS }) {
  const args = [...heapArgumentsOf(role), join(program, 'dist', 'services', role, 'main.js')];
  const { child, output } = launch(run, { program: process.execPath, args, cwd, env });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null && onLine !== undefined) createInterface({ input: stream }).on('line', (line) => onLine(line, { role, index }));
  }
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  const readyPath = env.SWITCHYARD_READY_FILE ?? '';
  let lastOutputAtMs = Date.now();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', () => {
      lastOutputAtMs = Date.now();
    });
  }
  for (;;) {
    const facts = readFacts(readyPath);
    if (facts !== null) {
      const { pid, url = null, managementUrl } = facts;
      return { role, index, pid, url, managementUrl, output, exited, signal: (name) => void child.kill(name), hasExited: () => hasEnded(child) };
    }
    if (hasEnded(child)) {
      const { code, signal } = await exited;
      throw new ScriptError(`${role}-${index} ended with ${signal ?? code} before it was ready; it printed:\n${output()}`);
    }
    if (Date.now() - lastOutputAtMs > silenceLimitMs) {
      throw new ScriptError(`${role}-${index} is not ready and has printed nothing for ${silenceLimitMs / 1_000} s; before that:\n${output()}`);
    }
    await delay(POLL_MS);
  }
}

/** @param {string} path @returns {{ pid: number, url?: string, managementUrl: string } | null} null: not yet written */
function readFacts(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** Role after role: a draining process needs the later ones. @param {ClusterProcess[]} processes @param {number} drainSeconds */
async function stopProcesses(processes, drainSeconds) {
  for (const role of roles) {
    const running = processes.filter((one) => one.role === role && !one.hasExited());
    for (const one of running) one.signal('SIGTERM');
    const timeout = setTimeout(() => running.forEach((one) => void one.signal('SIGKILL')), drainSeconds * 1_000 + STOP_MARGIN_MS);
    await Promise.all(running.map((one) => one.exited));
    clearTimeout(timeout);
  }
}
