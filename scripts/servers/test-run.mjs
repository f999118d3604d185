import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from '../process-identity.mjs';
import { signalGroup } from '../run-child.mjs';

/** `killWith` ends it at once and leaves no shared memory or lock behind. */
/** @typedef {{ child: import('node:child_process').ChildProcess, stopWith: NodeJS.Signals, killWith: NodeJS.Signals, output: () => string }} Server */
/** @typedef {{ pid: number, identity: string | null, killWith?: NodeJS.Signals }} Recorded */
/** @typedef {{ folder: string, servers: Server[], release: () => void }} TestRun */

const FOLDER_PREFIX = 'switchyard-test-services-';
const STOP_TIMEOUT_MS = 10_000;
const POLL_MS = 20;
/** For the error when a server does not start. */
const MAX_OUTPUT_CHARS = 16 * 1024;

/**
 * Opens a run: a folder for servers, which end with {@link closeRun}, with this process however it exits, or, after a `kill -9`, when the next run
 * opens.
 *
 * @param {{ callerHandlesSignals?: boolean }} [options] `callerHandlesSignals`: the caller handles signals itself, and closes the run then
 * @returns {Promise<TestRun>}
 */
export async function openRun({ callerHandlesSignals = false } = {}) {
  await endLeftoverRuns();
  /** @type {TestRun} */
  const run = { folder: mkdtempSync(join(tmpdir(), FOLDER_PREFIX)), servers: [], release: () => {} };
  run.release = endWithThisProcess(run, callerHandlesSignals);
  record(run);
  return run;
}

/** Servers stop in order. @param {TestRun} run */
export async function closeRun(run) {
  await Promise.all(run.servers.map(stopServer));
  removeFolder(run.folder);
  run.release();
}

/** @param {TestRun} run @param {string} name @returns {string} */
export function makeFolder(run, name) {
  const folder = join(run.folder, name);
  mkdirSync(folder);
  return folder;
}

/**
 * @typedef {object} Launch
 * @property {string} program
 * @property {string[]} args
 * @property {string} [cwd] default: the root of the file system
 * @property {NodeJS.ProcessEnv} [env] default: {@link serverEnvironment}
 * @property {{ uid: number, gid: number } | null} [owner] default: the current user
 * @property {NodeJS.Signals} [stopWith]
 * @property {NodeJS.Signals} [killWith]
 */

/** @param {TestRun} run @param {Launch} what @returns {Server} */
export function launch(run, { program, args, cwd = '/', env = serverEnvironment(), owner = null, stopWith = 'SIGTERM', killWith = 'SIGKILL' }) {
  // A process group of its own: Ctrl-C in a terminal reaches only the tests, which then stop their servers.
  const child = spawn(program, args, { ...owner, cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const server = { child, stopWith, killWith, output: collect(child) };
  run.servers.push(server);
  record(run);
  return server;
}

/** @param {import('node:child_process').ChildProcess} child */
export function hasEnded({ pid, exitCode, signalCode }) {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

/** PGHOST, a locale that is not installed or a proxy would change the servers' behaviour. */
export function serverEnvironment() {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', PGCONNECT_TIMEOUT: '5' };
}

/** @param {import('node:child_process').ChildProcess} child @returns {() => string} the end of its output, or why it did not start */
function collect(child) {
  let text = '';
  /** @param {Buffer} bytes */
  const append = (bytes) => {
    text = (text + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout?.on('data', append);
  child.stderr?.on('data', append);
  child.on('error', (error) => {
    text += error.message;
  });
  return () => text;
}

/** @param {Server} server */
async function stopServer({ child, stopWith }) {
  if (hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill(stopWith);
  const timeout = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), STOP_TIMEOUT_MS);
  await ended;
  clearTimeout(timeout);
}

/**
 * Ends the servers when this process exits without having stopped them, also by a signal.
 *
 * @param {TestRun} run
 * @param {boolean} callerHandlesSignals
 * @returns {() => void} removes the handlers
 */
function endWithThisProcess(run, callerHandlesSignals) {
  const endNow = () => {
    for (const { child, killWith } of run.servers) if (!hasEnded(child)) signalGroup(child.pid, killWith);
    removeFolder(run.folder);
  };
  const signals = callerHandlesSignals ? {} : { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
  const handlers = Object.entries(signals).map(([name, code]) => ({ name, exit: () => process.exit(code) }));
  process.on('exit', endNow);
  for (const { name, exit } of handlers) process.on(name, exit);
  return () => {
    process.off('exit', endNow);
    for (const { name, exit } of handlers) process.off(name, exit);
  };
}

/** For the clean-up after a kill -9. Renamed into place, so that it is never read half-written. @param {TestRun} run */
function record({ folder, servers }) {
  const started = servers.flatMap(({ child, killWith }) => (child.pid === undefined ? [] : [{ ...recorded(child.pid), killWith }]));
  writeFileSync(join(folder, 'run.json.unfinished'), JSON.stringify({ owner: recorded(process.pid), servers: started }));
  renameSync(join(folder, 'run.json.unfinished'), join(folder, 'run.json'));
}

/** @param {number} pid @returns {Recorded} */
function recorded(pid) {
  return { pid, identity: processIdentity(pid) };
}

/** Ends servers of earlier runs that were killed. Touches only our folders and processes. */
async function endLeftoverRuns() {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(FOLDER_PREFIX))) {
    const folder = join(tmpdir(), name);
    const left = readRecord(folder);
    if (left === null || isStillRunning(left.owner)) continue; // not ours, or a concurrent run
    await Promise.all(left.servers.map(endRecorded));
    removeFolder(folder);
  }
}

/** @param {string} folder @returns {{ owner: Recorded, servers: Recorded[] } | null} null for a folder that is not ours */
function readRecord(folder) {
  try {
    const stat = lstatSync(folder);
    if (!stat.isDirectory() || stat.uid !== process.getuid?.() || !existsSync(join(folder, 'run.json'))) return null;
    return JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
  } catch {
    return null; // its own run removed it meanwhile
  }
}

/** @param {Recorded} server */
async function endRecorded(server) {
  if (isStillRunning(server)) signalGroup(server.pid, server.killWith ?? 'SIGKILL');
  const untilMs = Date.now() + STOP_TIMEOUT_MS;
  while (isStillRunning(server)) {
    await delay(POLL_MS);
    if (Date.now() > untilMs) signalGroup(server.pid, 'SIGKILL');
  }
}

/** @param {Recorded} process */
function isStillRunning({ pid, identity }) {
  return identity !== null && processIdentity(pid) === identity;
}

/** A server that is ending may still be writing. @param {string} folder */
function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}
