import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** What a failing tool says last is what matters; more than this of it helps nobody. */
const MAX_OUTPUT_CHARS = 64 * 1024;
/** A child that was asked to end and has not by now is ended the hard way. */
const END_TIMEOUT_MS = 5_000;

/** A signal arrived and what was under way has been ended. */
export class Interrupted extends Error {
  /** @param {NodeJS.Signals} signal */
  constructor(signal) {
    super(`ended by ${signal}`);
    this.signal = signal;
    /** What a shell reports for a program that a signal ended. */
    this.exitCode = 128 + constants.signals[signal];
  }
}

/**
 * Runs `action` with an AbortSignal that fires at the first SIGINT, SIGTERM or SIGHUP, its reason being an {@link Interrupted}. Further
 * signals change nothing: what has to be ended is being ended already.
 *
 * @template Result
 * @param {(signal: AbortSignal) => Promise<Result>} action
 * @returns {Promise<Result>}
 * @throws {Interrupted} when a signal came, whatever the action made of it
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
 * Runs a program to its end and collects what it prints. It gets a process group of its own, since tools start tools: `tsc` is a script
 * around a binary, and ending the script alone would leave the binary writing into dist/.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, signal?: AbortSignal, onStart?: (pid: number) => void }} options
 * @returns {Promise<{ code: number | null, output: string }>} `code` is null when a signal ended it or it could not be started
 * @throws the signal's reason, once the whole group has been told to end and the program has
 */
export async function runChild(command, args, { cwd, env, signal, onStart }) {
  signal?.throwIfAborted();
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  if (child.pid !== undefined && onStart) onStart(child.pid);
  let output = '';
  /** @param {Buffer} bytes */
  const keep = (bytes) => {
    output = (output + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);

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

/** Signals a whole process group; one that is gone is fine. @param {number | undefined} pid the group's leader @param {NodeJS.Signals} name */
export function signalGroup(pid, name) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // The group has ended by itself.
  }
}
