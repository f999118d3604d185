import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ScriptError } from '../run-script.mjs';
import { hasEnded, launch, makeFolder, serverEnvironment } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/** @typedef {import('./test-run.mjs').Server} Server */

/**
 * @typedef {object} Store a server on a loopback port with a folder of its own, which can be stopped and restarted
 * @property {string} url with the password, if any
 * @property {number} port unchanged across restarts
 * @property {number} pid of the last started server; 0 before the first
 * @property {() => Promise<void>} start starts it on its port and folder, and resolves once it answers
 * @property {(signal: NodeJS.Signals) => Promise<void>} end sends the signal and resolves when it has exited
 * @property {() => Promise<void>} kill ends it at once, like a machine failure; what it had stored is there at its next start
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => string} output the end of its output
 */

/** initdb on a busy machine takes several seconds. */
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 25;
/** Another process can take a port between finding it free and binding it. */
const MAX_PORT_ATTEMPTS = 5;
/** Of an idle local server. */
const GREETING_TIMEOUT_MS = 1_000;
const PORT_IN_USE = /address already in use/i;
/** A server that has just exited may still hold them: the start is retried. */
const STILL_IN_USE = /already in use|still in use|lock file/i;

/**
 * Go runtime settings of the broker, as in docker-compose.yml (docs/adr/0022): the scheduler's monitor thread never sleeps, since a wake-up would
 * be due for nearly every message; the heap is collected when it has grown by half.
 */
export const natsEnvironment = { GODEBUG: 'schedtrace=2000000000', GOGC: '50' };

/**
 * Of the servers of a cluster, as in docs/deploy.md: a silent one is noticed within 4 s, by the others and by its clients. Until then what goes to its
 * clients is lost on the way. Behind the settings of a single server, which it replaces.
 */
export const natsClusterPings = ['ping_interval: "1s"', 'ping_max: 3'];

/**
 * @typedef {object} StoreTls PEM texts, of a certificate for `localhost`; a store that has them admits no other connections than those over TLS
 * @property {string} certificate
 * @property {string} key
 * @property {string} authority
 */

/** @param {string} folder @param {StoreTls} tls @param {{ uid: number, gid: number } | null} [owner] */
function writeTlsFiles(folder, { certificate, key, authority }, owner = null) {
  const files = { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key'), authority: join(folder, 'root.crt') };
  for (const [path, text] of /** @type {const} */ ([
    [files.certificate, certificate],
    [files.key, key],
    [files.authority, authority],
  ])) {
    writeFileSync(path, text, { mode: 0o600 });
    if (owner !== null) chownSync(path, owner.uid, owner.gid);
  }
  return files;
}

/**
 * @typedef {object} NatsOptions
 * @property {string} program
 * @property {string} [config] in the server's own syntax, without ports and folders
 * @property {Record<string, string>} [env] variables that it refers to
 * @property {string} [name] of its files, where a run has several
 * @property {string} [folder] of its streams; a given one is not removed
 * @property {number | undefined} [port] default: any free one
 * @property {StoreTls | undefined} [tls]
 */

/** @param {TestRun} run @param {NatsOptions} options @returns {Promise<Store & { folder: string }>} */
export async function openNats(run, { program, config = 'jetstream {}', env = {}, name = 'nats', folder = makeFolder(run, name), port, tls }) {
  const configPath = join(run.folder, `${name}.conf`);
  writeFileSync(configPath, tls === undefined ? config : `${config}${natsTls(writeTlsFiles(makeFolder(run, `${name}-tls`), tls))}`);
  const store = await openStore(
    {
      name: 'nats-server',
      launch: (at) =>
        launch(run, {
          program,
          args: ['-c', configPath, '-a', '127.0.0.1', '-p', String(at), '-js', '-sd', folder],
          env: { ...serverEnvironment(), ...natsEnvironment, ...env },
        }),
      // The greeting is one line of JSON with the state of JetStream.
      isReady: async (at) => (await readGreeting(at)).includes('"jetstream":true'),
      urlOf: (at) => (tls === undefined ? `nats://127.0.0.1:${at}` : `tls://localhost:${at}`),
    },
    { port },
  );
  return Object.assign(store, { folder });
}

/** @param {{ certificate: string, key: string }} files */
function natsTls({ certificate, key }) {
  return `tls { cert_file: "${certificate}", key_file: "${key}" }\n`;
}

/**
 * Redis without persistence.
 *
 * @param {TestRun} run
 * @param {{ program: string, password?: string | undefined, started?: boolean, tls?: StoreTls | undefined }} options `started: false`: it waits for `start`
 * @returns {Promise<Store>}
 */
export async function openRedis(run, { program, password, started = true, tls }) {
  const files = tls === undefined ? null : writeTlsFiles(makeFolder(run, 'redis-tls'), tls);
  const tlsArgs =
    files === null
      ? []
      : ['--tls-cert-file', files.certificate, '--tls-key-file', files.key, '--tls-ca-cert-file', files.authority, '--tls-auth-clients', 'no'];
  const secret = password === undefined ? [] : ['--requirepass', password];
  const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', makeFolder(run, 'redis'), ...secret, ...tlsArgs];
  return openStore(
    {
      name: 'redis-server',
      launch: (at) => launch(run, { program, args: [...(files === null ? ['--port', String(at)] : ['--port', '0', '--tls-port', String(at)]), ...fixed] }),
      isReady: async (_, { output }) => /ready to accept connections/i.test(output()),
      urlOf: (at) =>
        `${files === null ? 'redis' : 'rediss'}://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}${files === null ? '127.0.0.1' : 'localhost'}:${at}`,
    },
    { started },
  );
}

/**
 * @typedef {object} PostgresOptions
 * @property {string} bin
 * @property {string | undefined} [password] required from every client
 * @property {boolean} [durable] with fsync, as in production
 * @property {Record<string, string>} [settings] added to the test defaults
 * @property {StoreTls | undefined} [tls]
 * @property {string | undefined} [template] data folder of a stopped server of the same version, which requires no password: copied in place of a
 * run of initdb
 */

/**
 * Its URL names the database `postgres` with its superuser; `folder` is its data folder.
 *
 * @param {TestRun} run
 * @param {PostgresOptions} options
 * @returns {Promise<Store & { folder: string }>}
 */
export async function openPostgres(run, { bin, password, durable = false, settings = {}, tls, template }) {
  const owner = postgresOwner();
  const folder = makeFolder(run, 'postgres');
  if (owner !== null) {
    chmodSync(run.folder, 0o711); // mkdtemp gives access to us alone, and PostgreSQL runs as another user
    chownSync(folder, owner.uid, owner.gid);
  }
  const data = join(folder, 'data');
  if (template === undefined) await initialise(run, { bin, password, owner, folder, data });
  else await runToEnd('cp', launch(run, { program: 'cp', args: ['-a', template, data] })); // it keeps the owner

  const tlsSettings = tls === undefined ? {} : postgresTls(folder, writeTlsFiles(folder, tls, owner), password === undefined ? 'trust' : 'scram-sha-256');
  const store = await openStore({
    name: 'postgres',
    launch: (at) => {
      const serverArgs = postgresArgs(data, { port: String(at), fsync: durable ? 'on' : 'off', ...tlsSettings, ...settings });
      // SIGTERM would wait for clients to disconnect; SIGKILL would leave shared memory behind.
      return launch(run, { program: join(bin, 'postgres'), args: serverArgs, owner, stopWith: 'SIGINT', killWith: 'SIGQUIT' });
    },
    // It accepts connections before queries, and logs when it accepts both.
    isReady: async (_, { output }) => /system is ready to accept connections/.test(output()),
    urlOf: (at) => {
      const user = `postgres${password === undefined ? '' : `:${encodeURIComponent(password)}`}`;
      return tls === undefined ? `postgres://${user}@127.0.0.1:${at}/postgres` : `postgres://${user}@localhost:${at}/postgres?sslmode=verify-full`;
    },
  });
  return Object.assign(store, { folder: data });
}

/** @typedef {{ bin: string, password: string | undefined, owner: { uid: number, gid: number } | null, folder: string, data: string }} Initialised */

/** @param {TestRun} run @param {Initialised} what @returns {Promise<void>} */
async function initialise(run, { bin, password, owner, folder, data }) {
  const passwordPath = join(folder, 'password');
  if (password !== undefined) writeFileSync(passwordPath, password);
  const authentication = password === undefined ? ['-A', 'trust'] : ['-A', 'scram-sha-256', '--pwfile', passwordPath];
  const args = ['--no-sync', ...authentication, '-U', 'postgres', '-E', 'UTF8', '-D', data];
  await runToEnd('initdb', launch(run, { program: join(bin, 'initdb'), args, owner }));
}

/** @param {string} name @param {Server} program @returns {Promise<void>} */
async function runToEnd(name, { child, output }) {
  const [code] = await once(child, 'close');
  if (code !== 0) throw new ScriptError(`${name} failed:\n${output()}`);
}

/** @param {string} folder @param {{ certificate: string, key: string }} files @param {string} method */
function postgresTls(folder, { certificate, key }, method) {
  const path = join(folder, 'hba.conf');
  writeFileSync(path, `hostssl all all all ${method}\n`, { mode: 0o644 });
  return { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key, hba_file: path };
}

/** As in docker-compose.yml: many processes with a pool each, and small tables of locks (docs/adr/0161). */
export const postgresSettings = { max_connections: '300', max_locks_per_transaction: '22', max_pred_locks_per_transaction: '10' };

/** @param {string} data @param {Record<string, string>} more */
function postgresArgs(data, more) {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...postgresSettings,
    ...more,
  };
  return ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** PostgreSQL refuses to run as root. Null: run it as the current user. */
function postgresOwner() {
  if (process.getuid?.() !== 0) return null;
  /** @param {string} flag */
  const idOf = (flag) => {
    const { status, stdout } = spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' });
    if (status !== 0) throw new ScriptError("PostgreSQL refuses to run as root, and there is no user 'postgres' to run it as. Start this as another user.");
    return Number(stdout);
  };
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/**
 * @typedef {object} StoreProgram
 * @property {string} name
 * @property {(port: number) => Server} launch
 * @property {(port: number, server: Server) => Promise<boolean>} isReady
 * @property {(port: number) => string} urlOf
 */

/** @param {StoreProgram} program @param {{ port?: number | undefined, started?: boolean }} [options] @returns {Promise<Store>} */
async function openStore(program, { port: fixedPort, started = true } = {}) {
  const first = started && fixedPort === undefined ? await startOnFreePort(program) : null;
  const port = first?.port ?? fixedPort ?? (await freePort());
  /** @type {Server | null} */
  let server = first?.server ?? null;
  /** @type {Store} */
  const store = {
    url: program.urlOf(port),
    port,
    get pid() {
      return server?.child.pid ?? 0;
    },
    output: () => server?.output() ?? '',
    async start() {
      if (server !== null && !hasEnded(server.child)) throw new Error(`${program.name} is running`);
      server = await startOnPort(program, port);
    },
    async end(signal) {
      if (server === null || hasEnded(server.child)) return;
      const ended = once(server.child, 'exit');
      server.child.kill(signal);
      await ended;
    },
    kill: () => store.end(server?.killWith ?? 'SIGKILL'),
    signal: (name) => void server?.child.kill(name),
  };
  if (started && first === null) await store.start();
  return store;
}

/** On any free port. @param {StoreProgram} program */
async function startOnFreePort(program) {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const server = program.launch(port);
    if (await becomesReady(program, server, port)) return { port, server };
    if (!PORT_IN_USE.test(server.output()) || attempt === MAX_PORT_ATTEMPTS) throw notStarted(program, server);
  }
}

/** On its fixed port. @param {StoreProgram} program @param {number} port */
async function startOnPort(program, port) {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const server = program.launch(port);
    if (await becomesReady(program, server, port)) return server;
    if (!STILL_IN_USE.test(server.output()) || performance.now() > untilMs) throw notStarted(program, server);
    await delay(POLL_MS);
  }
}

/** @param {StoreProgram} program @param {Server} server @param {number} port */
async function becomesReady({ isReady }, server, port) {
  const untilMs = performance.now() + START_TIMEOUT_MS;
  while (!hasEnded(server.child) && performance.now() < untilMs) {
    // Both: a foreign server may answer on that port while ours is about to find it taken.
    if ((await isReady(port, server)) && !hasEnded(server.child)) return true;
    await delay(POLL_MS);
  }
  return false;
}

/** @param {StoreProgram} program @param {Server} server */
function notStarted({ name }, server) {
  return new ScriptError(`${name} did not start:\n${server.output()}`);
}

/** The first data received; empty when there is none. @param {number} port @returns {Promise<string>} */
function readGreeting(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    /** @param {string} answer */
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(GREETING_TIMEOUT_MS, () => finish(''));
    socket.once('error', () => finish(''));
    socket.once('close', () => finish(''));
    socket.once('data', (answer) => finish(answer.toString('utf8')));
  });
}
