import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from './process-identity.mjs';
import { signalGroup } from './run-child.mjs';

/** `stopWith` asks it to end in order; `killWith` ends it at once, in the way that leaves nothing of it behind. */
/** @typedef {{ child: import('node:child_process').ChildProcess, stopWith: NodeJS.Signals, killWith: NodeJS.Signals, output: () => string }} Server */
/** @typedef {{ pid: number, identity: string | null, killWith?: NodeJS.Signals }} Recorded */
/** @typedef {{ folder: string, servers: Server[], release: () => void }} TestRun */

const FOLDER_PREFIX = 'switchyard-test-services-';
const STOP_TIMEOUT_MS = 10_000;
const LOOK_AGAIN_MS = 20;
/** What a server said last, for the error when it does not start. */
const MAX_OUTPUT_CHARS = 16 * 1024;

/**
 * A folder for one run's servers, and the promise that they end: with {@link closeRun}, with this process however it ends, or, if it was
 * killed, when the next run opens.
 *
 * @param {{ leaveSignals?: boolean }} [options] `leaveSignals`: who opens the run listens to signals itself, and closes it then
 * @returns {Promise<TestRun>}
 */
export async function openRun({ leaveSignals = false } = {}) {
  await endLeftovers();
  /** @type {TestRun} */
  const run = { folder: mkdtempSync(join(tmpdir(), FOLDER_PREFIX)), servers: [], release: () => {} };
  run.release = endWithThisProcess(run, leaveSignals);
  record(run);
  return run;
}

/** Ends every server in order and removes the folder. @param {TestRun} run */
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
 * @property {NodeJS.ProcessEnv} [env] default: nothing of the user's
 * @property {{ uid: number, gid: number } | null} [owner] default: ourselves
 * @property {NodeJS.Signals} [stopWith]
 * @property {NodeJS.Signals} [killWith]
 */

/** @param {TestRun} run @param {Launch} what @returns {Server} */
export function launch(run, { program, args, cwd = '/', env = serverEnvironment(), owner = null, stopWith = 'SIGTERM', killWith = 'SIGKILL' }) {
  // A group of its own: Ctrl-C in a terminal reaches the tests first, and they decide when their servers end.
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

/** Nothing of the user's: PGHOST, a locale that is not installed or a proxy would change what the servers do. */
export function serverEnvironment() {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', PGCONNECT_TIMEOUT: '5' };
}

/** @param {import('node:child_process').ChildProcess} child @returns {() => string} what it has printed last, or why it did not run */
function collect(child) {
  let text = '';
  /** @param {Buffer} bytes */
  const keep = (bytes) => {
    text = (text + bytes.toString('utf8')).slice(-MAX_OUTPUT_CHARS);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
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
 * Ends the servers when this process ends without having stopped them: at its exit, or by a signal that would end it.
 *
 * @param {TestRun} run
 * @param {boolean} leaveSignals
 * @returns {() => void} takes the hooks away again
 */
function endWithThisProcess(run, leaveSignals) {
  const endNow = () => {
    for (const { child, killWith } of run.servers) if (!hasEnded(child)) signalGroup(child.pid, killWith);
    removeFolder(run.folder);
  };
  const signals = leaveSignals ? {} : { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
  const handlers = Object.entries(signals).map(([name, code]) => ({ name, exit: () => process.exit(code) }));
  process.on('exit', endNow);
  for (const { name, exit } of handlers) process.on(name, exit);
  return () => {
    process.off('exit', endNow);
    for (const { name, exit } of handlers) process.off(name, exit);
  };
}

/** Writes down who runs for whom, for the run that comes after a kill -9. Renamed into place: that run must not read half of it. @param {TestRun} run */
function record({ folder, servers }) {
  const started = servers.flatMap(({ child, killWith }) => (child.pid === undefined ? [] : [{ ...recorded(child.pid), killWith }]));
  writeFileSync(join(folder, 'run.json.unfinished'), JSON.stringify({ owner: recorded(process.pid), servers: started }));
  renameSync(join(folder, 'run.json.unfinished'), join(folder, 'run.json'));
}

/** @param {number} pid @returns {Recorded} */
function recorded(pid) {
  return { pid, identity: processIdentity(pid) };
}

/** Ends what earlier runs left that could not clean up after themselves. Only folders and processes of ours are touched. */
async function endLeftovers() {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(FOLDER_PREFIX))) {
    const folder = join(tmpdir(), name);
    const left = readRecord(folder);
    if (left === null || stillRuns(left.owner)) continue; // not ours, or a run side by side with this one
    await Promise.all(left.servers.map(endRecorded));
    removeFolder(folder);
  }
}

/** @param {string} folder @returns {{ owner: Recorded, servers: Recorded[] } | null} null for a folder that is not for us to judge */
function readRecord(folder) {
  try {
    const stat = lstatSync(folder);
    if (!stat.isDirectory() || stat.uid !== process.getuid?.() || !existsSync(join(folder, 'run.json'))) return null;
    return JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));
  } catch {
    return null; // removed under our eyes by its own run
  }
}

/** @param {Recorded} server */
async function endRecorded(server) {
  if (stillRuns(server)) signalGroup(server.pid, server.killWith ?? 'SIGKILL');
  const untilMs = Date.now() + STOP_TIMEOUT_MS;
  while (stillRuns(server)) {
    await delay(LOOK_AGAIN_MS);
    if (Date.now() > untilMs) signalGroup(server.pid, 'SIGKILL');
  }
}

/** @param {Recorded} process */
function stillRuns({ pid, identity }) {
  return identity !== null && processIdentity(pid) === identity;
}

/** A server that is ending may still be writing: a few tries. @param {string} folder */
function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}
