import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** The end is kept: it has the reason of a failure. */
const MAX_OUTPUT_CHARS = 64 * 1024;
/** Time between SIGTERM and SIGKILL. */
const END_TIMEOUT_MS = 5_000;

/** Thrown after a signal, once the work in progress was ended. */
export class Interrupted extends Error {
  /** @param {NodeJS.Signals} signal */
  constructor(signal) {
    super(`ended by ${signal}`);
    this.signal = signal;
    /** As shells report it. */
    this.exitCode = 128 + constants.signals[signal];
  }
}

/**
 * Runs `action` with an AbortSignal that aborts at the first SIGINT, SIGTERM or SIGHUP, with an {@link Interrupted} as its reason.
 *
 * @template Result
 * @param {(signal: AbortSignal) => Promise<Result>} action
 * @returns {Promise<Result>}
 * @throws {Interrupted} after a signal, whatever the outcome of the action
 */
export async function interruptible(action) {
  const controller = new AbortController();
  /** @param {NodeJS.Signals} name */
  const interrupt = (name) => controller.abort(new Interrupted(name));
  const names = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
  for (const name of names) process.on(name, interrupt);
  try {
    const result = await action(controller.signal);
    controller.signal.throwIfAborted();
    return result;
  } catch (error) {
    controller.signal.throwIfAborted();
    throw error;
  } finally {
    for (const name of names) process.off(name, interrupt);
  }
}

/**
 * Runs a program and collects its output. It has its own process group: `tsc` is a script around a binary, which would go on writing into dist/
 * without the script.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, signal?: AbortSignal, onStart?: (pid: number) => void }} options
 * @returns {Promise<{ code: number | null, output: string }>} `code` is null when a signal ended it or it could not be started
 * @throws the signal's reason, after the group was signalled and the program has exited
 */
export async function runChild(command, args, { cwd, env, signal, onStart }) {
  signal?.throwIfAborted();
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  if (child.pid !== undefined && onStart) onStart(child.pid);
  let output = '';
  /** @param {Buffer} bytes */
  const append = (bytes) => {
    output = (output + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout.on('data', append);
  child.stderr.on('data', append);

  /** @type {NodeJS.Timeout | undefined} */
  let timeout;
  const end = () => {
    signalGroup(child.pid, 'SIGTERM');
    timeout = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), END_TIMEOUT_MS);
  };
  signal?.addEventListener('abort', end, { once: true });
  try {
    const code = await new Promise((resolve) => {
      child.once('error', (error) => {
        output += error.message;
        resolve(null);
      });
      child.once('close', resolve);
    });
    signal?.throwIfAborted();
    return { code, output };
  } finally {
    clearTimeout(timeout);
    signal?.removeEventListener('abort', end);
  }
}

/** Signals a whole process group, if it still exists. @param {number | undefined} pid the group's leader @param {NodeJS.Signals} name */
export function signalGroup(pid, name) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // no such group any more
  }
}
