import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** @typedef {import('./serve-target.mjs').Facts} Facts */

/**
 * @typedef {object} Target a running target
 * @property {string} name
 * @property {Facts} facts
 * @property {(name: string) => Promise<unknown>} call sends it a request of `calls`
 * @property {() => Promise<void>} stop
 */

/** A cluster with its stores, on a busy machine. */
const START_TIMEOUT_MS = 120_000;
const CALL_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 60_000;

/** Running targets. @type {Set<Target>} */
const running = new Set();
let isOver = false;

/**
 * Starts a target, with all of its processes on one core.
 *
 * @param {string} name of its file in this folder
 * @param {{ core: number | null, options: object }} how `core` null: on all of them
 * @returns {Promise<Target>}
 * @throws when it does not become ready, or when the bench is ending
 */
export async function startTarget(name, { core, options }) {
  if (isOver) throw new Error('the bench is ending');
  const program = [process.execPath, fileURLToPath(new URL(`${name}.mjs`, import.meta.url)), JSON.stringify(options)];
  const cores = core === null ? `0-${CORES_AT_MOST}` : String(core);
  // A process group: a Ctrl-C in a terminal does not reach it, and the bench ends it in order.
  const child = spawn('taskset', ['-c', cores, ...program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], detached: true });
  const exited = once(child, 'exit');
  const next = async (/** @type {number} */ timeoutMs) => {
    const message = once(child, 'message', { signal: AbortSignal.timeout(timeoutMs) });
    const first = await Promise.race([message, exited.then(() => null)]);
    if (first === null) throw new Error(`${name} has ended; what it printed stands above`);
    return first[0];
  };
  /** @type {Target} */
  const target = {
    name,
    facts: { roots: [] },
    call: async (call) => {
      const answer = next(CALL_TIMEOUT_MS);
      child.send({ call });
      return (await answer).result;
    },
    stop: async () => {
      running.delete(target);
      if (child.connected) child.send({ call: 'stop' });
      // Only when it does not respond. Its children are then ended by the next run that opens servers.
      const timeout = setTimeout(() => void child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timeout);
    },
  };
  running.add(target);
  try {
    target.facts = (await next(START_TIMEOUT_MS)).ready;
    return target;
  } catch (error) {
    await target.stop();
    throw error;
  }
}

/** Stops all running targets. From then on none is started. */
export async function stopTargets() {
  isOver = true;
  await Promise.all([...running].map((target) => target.stop()));
}

/** `taskset` passes over those that are not there. */
const CORES_AT_MOST = 1_023;
