import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ScriptError } from './run-script.mjs';
import { hasEnded, launch, makeFolder, serverEnvironment } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/** @typedef {import('./test-run.mjs').Server} Server */

/**
 * @typedef {object} Store a server on a free port of the loopback and with a folder of its own, which can be taken away and given back
 * @property {string} url
 * @property {() => Promise<void>} kill ends it at once, as the loss of its machine would; what it had stored is still there at its next start
 * @property {() => Promise<void>} start brings it back where it was, and resolves once it answers
 * @property {() => string} output what it has printed last
 */

/** initdb on a busy machine takes several seconds; a server that needs longer than this won't come. */
const START_PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 25;
/** Another process can take a port between our finding it free and the server's binding it; five times in a row is something else. */
const MAX_PORT_ATTEMPTS = 5;
/** One look at a server that is on this machine and idle. */
const TALK_PATIENCE_MS = 1_000;

/**
 * @param {TestRun} run
 * @param {{ program: string, config?: string, env?: Record<string, string> }} options `config` in the server's own language, without ports
 *   and folders; `env` for the variables that it names
 * @returns {Promise<Store>}
 */
export async function openNats(run, { program, config = 'jetstream {}', env = {} }) {
  const folder = makeFolder(run, 'nats');
  const configPath = join(folder, 'nats.conf');
  writeFileSync(configPath, config);
  const { port, store } = await openStore('nats-server', {
    launch: (at) =>
      launch(run, {
        program,
        args: ['-c', configPath, '-a', '127.0.0.1', '-p', String(at), '-js', '-sd', join(folder, 'data')],
        env: { ...serverEnvironment(), ...env },
      }),
    // The server greets with one line of JSON, and says there whether it has JetStream.
    isReady: async (at) => (await talk(at, '')).includes('"jetstream":true'),
  });
  return { url: `nats://127.0.0.1:${port}`, ...store };
}

/** @param {TestRun} run @param {{ program: string }} options @returns {Promise<Store>} */
export async function openRedis(run, { program }) {
  const folder = makeFolder(run, 'redis');
  const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const { port, store } = await openStore('redis-server', {
    launch: (at) => launch(run, { program, args: ['--port', String(at), ...fixed] }),
    isReady: async (at) => (await talk(at, 'PING\r\n')).startsWith('+PONG'),
  });
  return { url: `redis://127.0.0.1:${port}`, ...store };
}

/**
 * @param {TestRun} run
 * @param {{ bin: string, settings?: Record<string, string> }} options `settings` on top of those of a server that nobody's data lives on
 * @returns {Promise<Store>}
 */
export async function openPostgres(run, { bin, settings = {} }) {
  const owner = postgresOwner();
  const folder = makeFolder(run, 'postgres');
  if (owner !== null) {
    chmodSync(run.folder, 0o711); // mkdtemp lets only us through, and PostgreSQL runs as somebody else
    chownSync(folder, owner.uid, owner.gid);
  }
  const data = join(folder, 'data');
  const initdb = launch(run, { program: join(bin, 'initdb'), args: ['--no-sync', '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '-D', data], owner });
  const [code] = await once(initdb.child, 'close');
  if (code !== 0) throw new ScriptError(`initdb failed:\n${initdb.output()}`);

  const { port, store } = await openStore('postgres', {
    // SIGTERM would wait for clients to leave. Killed outright it would leave its shared memory behind, SIGQUIT does not.
    launch: (at) => launch(run, { program: join(bin, 'postgres'), args: postgresArgs(data, at, settings), owner, stopWith: 'SIGINT', killWith: 'SIGQUIT' }),
    // It accepts connections before it accepts queries.
    isReady: (at) => selectsOne(run, join(bin, 'psql'), at),
  });
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, ...store };
}

/** @param {string} data @param {number} port @param {Record<string, string>} more */
function postgresArgs(data, port, more) {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    // Nothing here outlives the run. A test about power loss needs a server of its own, without this.
    fsync: 'off',
    // Many processes side by side, each with pools of its own.
    max_connections: '300',
    ...more,
  };
  return ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** PostgreSQL refuses root. Null: run it as ourselves. */
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

/** @param {TestRun} run @param {string} psql @param {number} port */
async function selectsOne(run, psql, port) {
  const args = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', 'postgres', '-X', '-A', '-t', '-c', 'select 1'];
  const { child, output } = launch(run, { program: psql, args });
  const [code] = await once(child, 'close');
  return code === 0 && output().trim() === '1';
}

/** @typedef {{ launch: (port: number) => Server, isReady: (port: number) => Promise<boolean> }} StoreProgram */

/** @param {string} name @param {StoreProgram} program @returns {Promise<{ port: number, store: Omit<Store, 'url'> }>} */
async function openStore(name, program) {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    let server = program.launch(port);
    if (!(await becomesReady(server, port, program))) {
      const portWasTaken = server.child.exitCode !== null && /address already in use/i.test(server.output());
      if (portWasTaken && attempt < MAX_PORT_ATTEMPTS) continue;
      throw new ScriptError(`${name} did not start:\n${server.output()}`);
    }
    return {
      port,
      store: {
        output: () => server.output(),
        async kill() {
          if (hasEnded(server.child)) return;
          const ended = once(server.child, 'close');
          server.child.kill(server.killWith);
          await ended;
        },
        async start() {
          if (!hasEnded(server.child)) throw new Error(`${name} is running`);
          server = program.launch(port);
          if (!(await becomesReady(server, port, program))) throw new ScriptError(`${name} did not come back:\n${server.output()}`);
        },
      },
    };
  }
}

/** @param {Server} server @param {number} port @param {StoreProgram} program */
async function becomesReady({ child }, port, { isReady }) {
  const untilMs = Date.now() + START_PATIENCE_MS;
  while (!hasEnded(child) && Date.now() < untilMs) {
    // Both: somebody else's server may answer on that port while ours is about to find it taken.
    if ((await isReady(port)) && !hasEnded(child)) return true;
    await delay(LOOK_AGAIN_MS);
  }
  return false;
}

/** Sends a few bytes and returns the first answer; empty when there is none. @param {number} port @param {string} bytes @returns {Promise<string>} */
function talk(port, bytes) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes));
    /** @param {string} answer */
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(TALK_PATIENCE_MS, () => finish(''));
    socket.once('error', () => finish(''));
    socket.once('close', () => finish(''));
    socket.once('data', (answer) => finish(answer.toString('utf8')));
  });
}
