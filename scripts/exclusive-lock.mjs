import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from './process-identity.mjs';

/** @typedef {{ pid: number, identity: string | null, nonce: string }} Holder */
/** One try: we hold the lock, or a running process does (`by`), or the files changed meanwhile (null) and another try decides. */
/** @typedef {{ held: true } | { held: false, by: Holder | null }} Look */

const LOOK_AGAIN_MS = 100;
/** Processes that each died while taking over from the one before. More are a bug. */
const MAX_STOPPED_SUCCESSORS = 100;

/**
 * Holds a lock file while `action` runs: one process of this machine at a time. The lock of a dead process (also by kill -9) is taken over at once;
 * a running one is waited for.
 *
 * @template Result
 * @param {string} path the lock file; its folder must exist
 * @param {() => Promise<Result>} action
 * @param {{ onWait?: (holderPid: number) => void, signal?: AbortSignal }} [options] `onWait` is called once, before the first wait
 * @returns {Promise<Result>}
 */
export async function withLock(path, action, { onWait, signal } = {}) {
  const mine = { pid: process.pid, identity: processIdentity(process.pid), nonce: randomUUID() };
  let waited = false;
  for (;;) {
    const look = tryToAcquire(path, mine);
    if (look.held) break;
    if (look.by !== null && !waited) {
      waited = true;
      if (onWait) onWait(look.by.pid);
    }
    await delay(LOOK_AGAIN_MS, undefined, { signal });
  }
  try {
    return await action();
  } finally {
    rmSync(path, { force: true });
  }
}

/**
 * @param {string} path
 * @param {Holder} mine
 * @returns {Look}
 */
function tryToAcquire(path, mine) {
  const temporary = `${path}.${mine.nonce}`;
  writeFileSync(temporary, JSON.stringify(mine));
  try {
    if (linkNew(temporary, path)) return { held: true };
    const holder = readHolder(path);
    if (holder === null || isRunning(holder)) return { held: false, by: holder };
    return succeed({ path, draft: temporary, dead: holder });
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Takes over from a dead process. Were its file deleted and created anew, two waiters could both succeed. So each stale lock has one claim file,
 * named by its nonce; the process that creates it may replace the lock, by a rename.
 *
 * @param {{ path: string, draft: string, dead: Holder }} parts
 * @returns {Look}
 */
function succeed({ path, draft: temporary, dead: stale }) {
  let predecessor = stale;
  for (let links = 0; links < MAX_STOPPED_SUCCESSORS; links += 1) {
    const claim = `${path}.after-${predecessor.nonce}`;
    if (linkNew(temporary, claim)) {
      // Taken over long ago, and its claim file removed: the lock has another nonce.
      const current = readHolder(path);
      if (current === null || current.nonce !== stale.nonce) {
        rmSync(claim, { force: true });
        return { held: false, by: null };
      }
      renameSync(temporary, path);
      removeClaims(path);
      return { held: true };
    }
    const successor = readHolder(claim);
    if (successor === null || isRunning(successor)) return { held: false, by: successor };
    predecessor = successor; // it died before it took over: claim after it
  }
  throw new Error(`${path}: too many claims of dead processes; delete ${path}* and start again`);
}

/** @param {Holder} holder */
function isRunning({ pid, identity }) {
  const running = processIdentity(pid);
  return running !== null && running === identity;
}

/** Atomic; false when `target` exists. @param {string} source @param {string} target */
function linkNew(source, target) {
  try {
    linkSync(source, target);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} path @returns {Holder | null} null when the file is missing; a damaged one counts as a dead process's */
function readHolder(path) {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
  try {
    const { pid, identity, nonce } = JSON.parse(text);
    if (Number.isInteger(pid) && typeof nonce === 'string') return { pid, identity, nonce };
  } catch {
    // foreign, or truncated by a full disk: see below
  }
  return { pid: 0, identity: null, nonce: 'damaged' };
}

/** @param {string} path */
function removeClaims(path) {
  const claims = `${basename(path)}.after-`;
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(claims)) rmSync(join(dirname(path), name), { force: true });
  }
}
