import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { ScriptError } from './run-script.mjs';
import { ensureTestPrograms } from './test-programs.mjs';
import { closeRun, hasEnded, launch, makeFolder, openRun } from './test-run.mjs';
import { freePort } from './test-tcp.mjs';

/** @typedef {import('./test-run.mjs').Server} Server */

/**
 * @typedef {object} TestRedis
 * @property {string} url with the password if there is one
 * @property {number} port the same for as long as it lives, however often it is started
 * @property {() => Promise<void>} start resolves when it accepts connections
 * @property {() => Promise<void>} kill ends it at once, as a crash would, and forgets all it held
 * @property {() => void} freeze it lives and answers nobody, until `thaw`
 * @property {() => void} thaw
 * @property {() => Promise<void>} close ends it and removes its files
 */

const START_PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 20;

/**
 * A Redis of its own for tests that stop, kill or freeze it. It keeps nothing on disk.
 *
 * @param {{ password?: string, started?: boolean }} [options] `started: false`: it waits for `start`
 * @returns {Promise<TestRedis>}
 */
export async function startTestRedis({ password, started = true } = {}) {
  const { redis: program } = await ensureTestPrograms();
  const run = await openRun();
  const port = await freePort();
  const folder = makeFolder(run, 'redis');
  const secret = password === undefined ? [] : ['--requirepass', password];
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, ...secret];
  /** @type {Server | null} */
  let server = null;
  /** @param {NodeJS.Signals} name */
  const signal = (name) => server?.child.kill(name);
  const start = async () => {
    server = launch(run, { program, args });
    const untilMs = Date.now() + START_PATIENCE_MS;
    while (!/ready to accept connections/i.test(server.output())) {
      if (hasEnded(server.child) || Date.now() > untilMs) throw new ScriptError(`redis-server did not start:\n${server.output()}`);
      await delay(LOOK_AGAIN_MS);
    }
  };
  try {
    if (started) await start();
  } catch (error) {
    await closeRun(run);
    throw error;
  }
  return {
    url: `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
    port,
    start,
    kill: async () => {
      if (server === null || hasEnded(server.child)) return;
      const ended = once(server.child, 'exit');
      signal('SIGKILL');
      await ended;
    },
    freeze: () => void signal('SIGSTOP'),
    thaw: () => void signal('SIGCONT'),
    close: async () => {
      signal('SIGCONT');
      await closeRun(run);
    },
  };
}
