import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isProgram, runScript, ScriptError } from './run-script.mjs';
import { ensureTestPrograms } from './test-programs.mjs';
import { closeRun, hasEnded, launch, makeFolder, openRun } from './test-run.mjs';

/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/**
 * @typedef {object} NatsServer
 * @property {string} url
 * @property {number} port the same for as long as it lives, however often it is started
 * @property {string} folder of its streams
 * @property {number} pid of the server that was started last
 * @property {() => Promise<void>} start resolves when it answers
 * @property {() => Promise<void>} stop lets it write what it holds and resolves when it has ended
 * @property {() => Promise<void>} kill ends it at once, as the loss of its machine would
 * @property {() => Promise<void>} close ends it and removes what it wrote
 */
/** @typedef {{ redisUrl: string, postgresUrl: string, chromiumPath: string, stop: () => Promise<void> }} TestServices */

/** initdb on a busy machine takes several seconds; a server that needs longer than this won't come. */
const START_PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 50;
/** Another process can take a port between our finding it free and the server's binding it; five times in a row is something else. */
const MAX_PORT_ATTEMPTS = 5;
/** One look at a server that is on this machine and idle. */
const TALK_PATIENCE_MS = 1_000;

/**
 * Starts a Redis and a PostgreSQL for one run of tests: on free ports of the loopback, in a folder of their own below the system's temporary
 * one, untouched by any server of the machine. A NATS server starts so fast that each test file has its own: {@link startNatsServer}.
 *
 * @returns {Promise<TestServices>}
 */
export async function startTestServices() {
  const programs = await ensureTestPrograms();
  const run = await openRun();
  try {
    const [redisUrl, postgresUrl] = await Promise.all([startRedis(run, programs.redis), startPostgres(run, programs.postgresBin)]);
    return { redisUrl, postgresUrl, chromiumPath: programs.chromium, stop: () => closeRun(run) };
  } catch (error) {
    await closeRun(run);
    throw error;
  }
}

/**
 * A NATS server with JetStream of its own for a test file, which may stop, kill and restart it. It starts in some 40 ms. What is not closed
 * ends with this process.
 *
 * @param {{ folder?: string, port?: number, config?: string }} [options] `folder` of its streams, which then stays; `port`, else a free one;
 *   `config` in the server's own language, without ports and folders
 * @returns {Promise<NatsServer>} started
 */
export async function startNatsServer({ folder: given, port: wanted, config } = {}) {
  const { nats: program } = await ensureTestPrograms();
  const run = await openRun();
  try {
    const folder = given ?? makeFolder(run, 'nats');
    const configPath = join(run.folder, 'nats.conf');
    if (config !== undefined) writeFileSync(configPath, config);
    const args = [...(config === undefined ? [] : ['-c', configPath]), '-a', '127.0.0.1', '-js', '-sd', folder];
    /** @param {number} at */
    const launchAt = (at) => launch(run, { program, args: [...args, '-p', String(at)] });
    let server = await startOn('nats-server', wanted ?? null, { start: launchAt, isReady: isNatsReady });
    /** @param {NodeJS.Signals} signal */
    const end = async (signal) => {
      if (hasEnded(server.child)) return;
      const ended = once(server.child, 'exit');
      server.child.kill(signal);
      await ended;
    };
    const { port } = server;
    return {
      url: `nats://127.0.0.1:${port}`,
      port,
      folder,
      get pid() {
        return server.child.pid ?? 0;
      },
      start: async () => {
        server = await startOn('nats-server', port, { start: launchAt, isReady: isNatsReady });
      },
      stop: () => end('SIGTERM'),
      kill: () => end('SIGKILL'),
      close: () => closeRun(run),
    };
  } catch (error) {
    await closeRun(run);
    throw error;
  }
}

/** The server greets with one line of JSON, and says there whether it has JetStream. @param {number} port */
async function isNatsReady(port) {
  return (await talk(port, '')).includes('"jetstream":true');
}

/** @param {TestRun} run @param {string} program */
async function startRedis(run, program) {
  const folder = makeFolder(run, 'redis');
  const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const { port } = await startOn('redis-server', null, {
    start: (at) => launch(run, { program, args: ['--port', String(at), ...fixed] }),
    isReady: async (at) => (await talk(at, 'PING\r\n')).startsWith('+PONG'),
  });
  return `redis://127.0.0.1:${port}`;
}

/** @param {TestRun} run @param {string} bin */
async function startPostgres(run, bin) {
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

  const { port } = await startOn('postgres', null, {
    // SIGTERM would wait for clients to leave. Killed outright it would leave its shared memory behind, SIGQUIT does not.
    start: (at) => launch(run, { program: join(bin, 'postgres'), args: postgresArgs(data, at), owner, stopWith: 'SIGINT', killWith: 'SIGQUIT' }),
    // It accepts connections before it accepts queries.
    isReady: (at) => selectsOne(run, join(bin, 'psql'), at),
  });
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

/** @param {string} data @param {number} port */
function postgresArgs(data, port) {
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    // Nothing here outlives the run. A test about power loss needs a server of its own, without this.
    'fsync=off',
    // Test files run side by side, each with pools of its own.
    'max_connections=300',
  ];
  return ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
}

/** PostgreSQL refuses root. Null: run it as ourselves. */
function postgresOwner() {
  if (process.getuid?.() !== 0) return null;
  /** @param {string} flag */
  const idOf = (flag) => {
    const { status, stdout } = spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' });
    if (status !== 0) throw new ScriptError("PostgreSQL refuses to run as root, and there is no user 'postgres' to run it as. Run the tests as another user.");
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

/**
 * @param {string} name
 * @param {number | null} wanted its port, or null: any free one
 * @param {{ start: (port: number) => import('./test-run.mjs').Server, isReady: (port: number) => Promise<boolean> }} server
 * @returns {Promise<{ port: number, child: import('node:child_process').ChildProcess }>}
 */
async function startOn(name, wanted, { start, isReady }) {
  for (let attempt = 1; ; attempt += 1) {
    const port = wanted ?? (await freePort());
    const { child, output } = start(port);
    const untilMs = Date.now() + START_PATIENCE_MS;
    while (!hasEnded(child) && Date.now() < untilMs) {
      // Both: somebody else's server may answer on that port while ours is about to find it taken.
      if ((await isReady(port)) && !hasEnded(child)) return { port, child };
      await delay(LOOK_AGAIN_MS);
    }
    const portWasTaken = child.exitCode !== null && /address already in use/i.test(output());
    // A port that was asked for may still be held by what ended a moment ago.
    if (!portWasTaken || attempt === MAX_PORT_ATTEMPTS) throw new ScriptError(`${name} did not start:\n${output()}`);
  }
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

/** @returns {Promise<number>} a port that was free a moment ago */
async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}

if (isProgram(import.meta.url)) {
  await runScript(async () => {
    const { redisUrl, postgresUrl, chromiumPath } = await startTestServices();
    const { url: natsUrl } = await startNatsServer();
    console.log([natsUrl, redisUrl, postgresUrl, chromiumPath, 'Ctrl-C ends them.'].join('\n')); // the servers keep this process alive
  });
}
