import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { processIdentity } from './process-identity.mjs';

/** @typedef {{ pid: number, identity: string | null, nonce: string }} Holder */
/** One look: we hold the lock now, or who lives and holds it, or (null) the files changed under our eyes and another look decides. */
/** @typedef {{ held: true } | { held: false, by: Holder | null }} Look */

/** A person is waiting, and looking costs next to nothing. */
const LOOK_AGAIN_MS = 100;
/** A chain of holders that all died while taking over from each other; longer than this is not bad luck but a fault. */
const MAX_STOPPED_SUCCESSORS = 100;

/**
 * Holds a lock file while `action` runs. One holder at a time over all processes of this machine; a holder that died (also by kill -9)
 * is succeeded at once, a living one is waited for.
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
 * Takes the place of a dead holder. Deleting its file and making a new one would let two waiters both delete and both make; so there is
 * one claim file per dead holder, named after the holder's own nonce, and who makes it may replace the lock, by a rename.
 *
 * @param {{ path: string, draft: string, dead: Holder }} parts
 * @returns {Look}
 */
function succeed({ path, draft: temporary, dead: stale }) {
  let predecessor = stale;
  for (let links = 0; links < MAX_STOPPED_SUCCESSORS; links += 1) {
    const claim = `${path}.after-${predecessor.nonce}`;
    if (linkNew(temporary, claim)) {
      // A slow waiter may claim what somebody has long succeeded to, whose claim file is gone: then the lock says so.
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
    predecessor = successor; // it died before it could take over: whoever claims after it may
  }
  throw new Error(`${path}: too many claims of dead processes; delete ${path}* and start again`);
}

/** @param {Holder} holder */
function isRunning({ pid, identity }) {
  const running = processIdentity(pid);
  return running !== null && running === identity;
}

/** Makes `target` with the content of `source` in one step: it is either absent or whole. @param {string} source @param {string} target */
function linkNew(source, target) {
  try {
    linkSync(source, target);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} path @returns {Holder | null} null when the file is gone; a damaged one counts as a dead holder's */
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
    // Not ours, or cut off by a full disk: below.
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
