import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ScriptError } from './run-script.mjs';
import { ensureTestPrograms } from './test-programs.mjs';
import { closeRun, hasEnded, launch, makeFolder, openRun } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/** @typedef {import('./test-run.mjs').TestRun} TestRun */
/** @typedef {import('./test-run.mjs').Server} Server */

/**
 * @typedef {object} TestPostgres
 * @property {string} url of the database `postgres`, as its superuser, with the password if there is one
 * @property {number} port the same for as long as it lives, however often it is started
 * @property {() => Promise<void>} start resolves when it answers statements
 * @property {(signal: 'SIGINT' | 'SIGTERM' | 'SIGQUIT' | 'SIGKILL') => Promise<void>} stop tells the server so and resolves when it has ended
 * @property {() => Promise<void>} close ends it and removes its files
 */

const START_PATIENCE_MS = 60_000;
const LOOK_AGAIN_MS = 50;

/**
 * A PostgreSQL of its own for tests that stop, kill or restart it.
 *
 * @param {{ password?: string, durable?: boolean, settings?: string[] }} [options] `password`: everybody must have it. `durable`: with fsync, as a
 * server is run for real. `settings`: more of them, as `name=value`
 * @returns {Promise<TestPostgres>} started
 */
export async function startTestPostgres({ password, durable = false, settings = [] } = {}) {
  const { postgresBin: bin } = await ensureTestPrograms();
  const run = await openRun();
  try {
    const owner = postgresOwner();
    const folder = makeFolder(run, 'postgres');
    if (owner !== null) {
      chmodSync(run.folder, 0o711); // mkdtemp lets only us through, and PostgreSQL runs as somebody else
      chownSync(folder, owner.uid, owner.gid);
    }
    const data = join(folder, 'data');
    await initialise(run, { bin, owner, folder, data, password });
    const port = await freePort();
    const args = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', `fsync=${durable ? 'on' : 'off'}`, ...settings];
    /** @type {Server | null} */
    let server = null;
    const start = async () => {
      server = await startServer(run, { bin, owner, port, args: ['-D', data, ...args.flatMap((setting) => ['-c', setting])] });
    };
    await start();
    return {
      url: `postgres://postgres${password === undefined ? '' : `:${encodeURIComponent(password)}`}@127.0.0.1:${port}/postgres`,
      port,
      start,
      stop: async (signal) => {
        if (server === null || hasEnded(server.child)) return;
        const ended = once(server.child, 'exit');
        server.child.kill(signal);
        await ended;
      },
      close: () => closeRun(run),
    };
  } catch (error) {
    await closeRun(run);
    throw error;
  }
}

/** @param {TestRun} run @param {{ bin: string, owner: { uid: number, gid: number } | null, folder: string, data: string, password: string | undefined }} what */
async function initialise(run, { bin, owner, folder, data, password }) {
  const authentication = password === undefined ? ['-A', 'trust'] : ['-A', 'scram-sha-256', '--pwfile', join(folder, 'password')];
  if (password !== undefined) writeFileSync(join(folder, 'password'), password, { mode: 0o644 });
  const args = ['--no-sync', ...authentication, '-U', 'postgres', '-E', 'UTF8', '-D', data];
  const initdb = launch(run, { program: join(bin, 'initdb'), args, owner });
  const [code] = await once(initdb.child, 'close');
  if (code !== 0) throw new ScriptError(`initdb failed:\n${initdb.output()}`);
}

/**
 * A server that was killed outright leaves its memory behind until the last of its processes has ended, and refuses to start before: so
 * it is started again until it stays.
 *
 * @param {TestRun} run
 * @param {{ bin: string, owner: { uid: number, gid: number } | null, port: number, args: string[] }} what
 * @returns {Promise<Server>}
 */
async function startServer(run, { bin, owner, port, args }) {
  const untilMs = Date.now() + START_PATIENCE_MS;
  for (;;) {
    const server = launch(run, { program: join(bin, 'postgres'), args, owner, stopWith: 'SIGINT', killWith: 'SIGQUIT' });
    while (!hasEnded(server.child)) {
      if (/ready to accept connections/.test(server.output())) return server;
      if (Date.now() > untilMs) throw new ScriptError(`postgres on port ${port} did not start:\n${server.output()}`);
      await delay(LOOK_AGAIN_MS);
    }
    if (Date.now() > untilMs || !/still in use|already in use|lock file/.test(server.output()))
      throw new ScriptError(`postgres did not start:\n${server.output()}`);
    await delay(LOOK_AGAIN_MS);
  }
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
