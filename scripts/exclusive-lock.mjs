import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from './process-identity.mjs';

/** @typedef {{ pid: number, identity: string | null, nonce: string }} LockOwner */
/** One try: acquired; or a running process has the lock (`owner`); or the files changed meanwhile (null) and another try decides. */
/** @typedef {{ acquired: true } | { acquired: false, owner: LockOwner | null }} Attempt */

const RETRY_MS = 100;
/** Claims of processes that each died while taking over from the one before. More are a bug. */
const MAX_STALE_CLAIMS = 100;

/**
 * Holds a lock file while `action` runs: one process of this machine at a time. The lock of a dead process (also by kill -9) is taken over at once;
 * a running one is waited for.
 *
 * @template Result
 * @param {string} path the lock file; its folder must exist
 * @param {() => Promise<Result>} action
 * @param {{ onWait?: (ownerPid: number) => void, signal?: AbortSignal }} [options] `onWait` is called once, before the first wait
 * @returns {Promise<Result>}
 */
export async function withLock(path, action, { onWait, signal } = {}) {
  const own = { pid: process.pid, identity: processIdentity(process.pid), nonce: randomUUID() };
  let waited = false;
  for (;;) {
    const attempt = tryToAcquire(path, own);
    if (attempt.acquired) break;
    if (attempt.owner !== null && !waited) {
      waited = true;
      if (onWait) onWait(attempt.owner.pid);
    }
    await delay(RETRY_MS, undefined, { signal });
  }
  try {
    return await action();
  } finally {
    rmSync(path, { force: true });
  }
}

/**
 * @param {string} path
 * @param {LockOwner} own
 * @returns {Attempt}
 */
function tryToAcquire(path, own) {
  const temporary = `${path}.${own.nonce}`;
  writeFileSync(temporary, JSON.stringify(own));
  try {
    if (linkNew(temporary, path)) return { acquired: true };
    const owner = readOwner(path);
    if (owner === null || isRunning(owner)) return { acquired: false, owner };
    return takeOver({ path, temporary, stale: owner });
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Takes over from a dead process. Were its file deleted and created anew, two waiters could both succeed. So each stale lock has one claim file,
 * named by its nonce; the process that creates it may replace the lock, by a rename.
 *
 * @param {{ path: string, temporary: string, stale: LockOwner }} files
 * @returns {Attempt}
 */
function takeOver({ path, temporary, stale }) {
  let predecessor = stale;
  for (let links = 0; links < MAX_STALE_CLAIMS; links += 1) {
    const claim = `${path}.after-${predecessor.nonce}`;
    if (linkNew(temporary, claim)) {
      // Taken over long ago, and its claim file removed: the lock has another nonce.
      const current = readOwner(path);
      if (current === null || current.nonce !== stale.nonce) {
        rmSync(claim, { force: true });
        return { acquired: false, owner: null };
      }
      renameSync(temporary, path);
      removeClaims(path);
      return { acquired: true };
    }
    const successor = readOwner(claim);
    if (successor === null || isRunning(successor)) return { acquired: false, owner: successor };
    predecessor = successor; // it died before it took over: claim after it
  }
  throw new Error(`${path}: too many stale claims of exited processes: delete ${path}* and start again`);
}

/** @param {LockOwner} owner */
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

/** @param {string} path @returns {LockOwner | null} null when the file is missing; a damaged one counts as a dead process's */
function readOwner(path) {
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
