import { parseArgs } from 'node:util';
import { lineOf } from './cluster-lines.mjs';
import { readEnvFile } from './env-file.mjs';
import { commands, enterPackage } from './package-folder.mjs';
import { runScript, ScriptError } from './run-script.mjs';
import { defaultCountOf, roles, startCluster } from './servers/start-cluster.mjs';

/** @typedef {import('./servers/start-cluster.mjs').Role} Role */
/** @typedef {import('./servers/start-cluster.mjs').ClusterProcess} ClusterProcess */

/** More overload a workstation. */
const MAX_PER_ROLE = 16;
/** A Ctrl-C under npm arrives twice; a later signal ends the script at once. */
const REPEAT_MS = 1_000;

/** npm takes options in front of it for its own. */
const { separator } = commands;
const usage = `Usage: ${commands.cluster}                                start a cluster on this machine
       ${commands.cluster}${separator} --actor-host 3 --router-worker 2
       ${commands.cluster}${separator} --help                      print this

Starts nats-server, PostgreSQL and Redis on free ports and in a temporary folder.
Then starts each service as processes of its own, one of each by default:
router-gateway, agent-gateway, actor-host, router-worker, effect-worker.
--router starts processes that are a router-gateway and a router-worker, beside
these or in their place: --router 2 --router-gateway 0 --router-worker 0
--agent does so for an agent-gateway and an actor-host.
All data is deleted when it ends. A process that is killed is reported and not
started again.

stdout has one line of JSON per process, and a last one when all are ready, which
names the file of the generated keys. stderr has the output of the processes, each
line with the name of its process. A terminal shows plain lines in place of the
JSON, and the generated keys.

Settings are environment variables, as for ${commands.start} (${commands.start}${separator} --help). Those
of ports and addresses have no effect.`;

/** Processes that exit afterwards were asked to. */
let isStopping = false;

const counts = countsFrom(process.argv.slice(2));
if (counts === 'help') process.stdout.write(`${usage}\n`);
else if (typeof counts === 'string') {
  console.error(`${counts}\n\n${usage}`);
  process.exitCode = 2;
} else await runScript(() => cluster(counts));

/** @param {Record<Role, number>} wanted */
async function cluster(wanted) {
  await enterPackage({ print: console.error });
  readEnvFile(process.env); // after npm, which must not get them
  const { describe, ...components } = await componentsFromBuild();
  const signalled = stopSignal();
  const starting = startCluster({
    ...components,
    counts: wanted,
    callerHandlesSignals: true,
    onLine: (line, { role, index }) => void process.stderr.write(`${role}-${index} | ${line}\n`),
    onProcess: report,
    print: console.error,
  });
  const early = await Promise.race([starting, signalled]);
  const started = await starting;
  if (typeof early !== 'string') {
    const urlsOf = (/** @type {Role} */ role) => started.processes.flatMap((one) => (one.role === role && one.url !== null ? [one.url] : []));
    const { nats, postgres, redis } = started.stores;
    const urls = { routerUrls: [...urlsOf('router-gateway'), ...urlsOf('router')], agentUrls: [...urlsOf('agent-gateway'), ...urlsOf('agent')] };
    const stores = { natsUrl: nats.url, databaseUrl: postgres.url, redisUrl: redis.url };
    const { text, keysFile } = await describe({ ...urls, folder: started.makeFolder('keys') });
    printEvent({ event: 'ready', ...urls, ...stores, keysFile });
    console.error(text);
  }
  const signal = await signalled;
  console.error(`\n${signal}: finishing requests in flight …`);
  isStopping = true;
  await started.stop();
  console.error('Stopped.');
}

/** @param {ClusterProcess} started */
function report({ role, index, pid, url, managementUrl, exited }) {
  printEvent({ event: 'process', role, index, pid, ...(url === null ? {} : { url }), managementUrl });
  exited.then(
    (exit) => {
      printEvent({ event: 'exit', role, index, pid, ...exit });
      if (!isStopping) console.error(`${role}-${index} (process ${pid}) ended with ${exit.signal ?? exit.code}; it is not restarted.`);
    },
    () => {},
  );
}

/** @param {Parameters<typeof lineOf>[0]} event */
function printEvent(event) {
  const line = process.stdout.isTTY === true ? lineOf(event) : JSON.stringify(event);
  if (line !== null) process.stdout.write(`${line}\n`);
}

/**
 * Imports from the build: key generation, the router's default configuration, the broker's users, the text printed at the start. Call it after
 * `prepare`, which makes the build.
 */
async function componentsFromBuild() {
  /** @param {string} path */
  const built = (path) => import(new URL(`../dist/${path}.js`, import.meta.url).href);
  /** @type {typeof import('../services/standalone/cluster-components.ts')} */
  const { clusterComponents } = await built('services/standalone/cluster-components');
  /** @type {typeof import('../bus/nats/server-config.ts')} */
  const { natsServerConfig } = await built('bus/nats/server-config');
  try {
    const components = await clusterComponents(process.env, { isTerminal: process.stderr.isTTY === true });
    // They write to pipes; their lines are copied to this process's stderr.
    const environment = { LOG_FORMAT: process.stderr.isTTY ? 'text' : 'json', ...components.environment };
    return { ...components, environment, natsConfig: natsServerConfig() };
  } catch (error) {
    throw error instanceof Error && error.name === 'SwitchyardError' ? new ScriptError(`The cluster can't start: ${error.message}`) : error;
  }
}

/** @returns {Promise<string>} the name of the first signal; a later one ends the script at once */
function stopSignal() {
  return new Promise((resolve) => {
    let firstAtMs = 0;
    for (const [name, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
      process.on(name, () => {
        if (firstAtMs === 0) {
          firstAtMs = performance.now();
          resolve(name);
        } else if (performance.now() - firstAtMs >= REPEAT_MS) process.exit(code);
      });
    }
  });
}

/** @param {string[]} args @returns {Record<Role, number> | string} `help`, or the error text */
function countsFrom(args) {
  /** @param {Role} role */
  const countOf = (role) => ({ type: /** @type {const} */ ('string'), default: String(defaultCountOf(role)) });
  const options = {
    'router-gateway': countOf('router-gateway'),
    'agent-gateway': countOf('agent-gateway'),
    agent: countOf('agent'),
    'actor-host': countOf('actor-host'),
    router: countOf('router'),
    'router-worker': countOf('router-worker'),
    'effect-worker': countOf('effect-worker'),
    help: { type: /** @type {const} */ ('boolean'), short: 'h', default: false },
  };
  let values;
  try {
    ({ values } = parseArgs({ args, options }));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (values.help) return 'help';
  const numbers = roles.map((role) => Number(values[role]));
  const wrong = numbers.findIndex((number) => !Number.isInteger(number) || number < 0 || number > MAX_PER_ROLE);
  if (wrong >= 0) return `--${roles[wrong]} takes a number from 0 to ${MAX_PER_ROLE}.`;
  return /** @type {Record<Role, number>} */ (Object.fromEntries(roles.map((role, index) => [role, numbers[index]])));
}
