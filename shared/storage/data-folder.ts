import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { SwitchyardError } from '../errors/switchyard-error.ts';

const LOCK_NAME = 'switchyard.lock';

/** Another process won the race for the lock in each of them. */
const MAX_TRIES = 100;

/** Nested guards. A second level exists only where a process died within the millisecond of a take-over. */
const MAX_DEPTH = 8;

const lockOwner = z.object({
  pid: z.number().int().positive(),
  /** In clock ticks since boot; null where `/proc` is not available. */
  startedAtTicks: z.number().nullable(),
  command: z.string(),
});
type LockOwner = z.infer<typeof lockOwner>;

/**
 * Locks the data folder of an embedded database until `release`; creates it with mode 0700 when missing. The lock of a dead process is taken over,
 * that of a running one never. Works within one machine: containers that share a folder do not see each other's processes.
 *
 * @throws `storage.folder_held` naming the process that holds it; `config.invalid` when the folder can't be created or written
 */
export async function lockDataFolder(folder: string): Promise<{ release(): Promise<void> }> {
  const path = resolve(folder);
  const lock = join(path, LOCK_NAME);
  // The nonce makes every lock's text unique: its hash names the guard.
  const own = JSON.stringify({ ...(await ownIdentity()), nonce: randomUUID() });
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await acquire(lock, own, path, 0);
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    const reason = error instanceof Error ? `: ${error.message}` : '';
    throw new SwitchyardError('config.invalid', `the data folder ${path} can't be used${reason}`, { cause: error });
  }
  return {
    release: async () => {
      // A running process never loses its lock, so this read can't be outdated.
      if ((await read(lock)) === own) await rm(lock, { force: true });
    },
  };
}

/**
 * Takes a lock, also that of a dead process. A stale lock is never removed, since a faster process may have replaced it since the read. It is
 * replaced under its guard, a second lock named by the hash of the stale text: one process gets the guard and reads the lock again; while the text
 * is unchanged no other process can replace it. Later processes find another text and start over. Stale guards are taken over alike.
 */
async function acquire(lock: string, own: string, folder: string, depth: number): Promise<void> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
    if (await create(lock, own)) return;
    const found = await read(lock);
    if (found === null) continue;
    const other = parseLockOwner(found);
    if (other !== null && (await isRunning(other))) throw lockedBy(other, folder);
    if (depth === MAX_DEPTH) break;
    const guard = join(dirname(lock), `${LOCK_NAME}.${createHash('sha256').update(found).digest('hex').slice(0, 32)}`);
    await acquire(guard, own, folder, depth + 1);
    try {
      if ((await read(lock)) === found) {
        await replace(lock, own);
        return;
      }
    } finally {
      await rm(guard, { force: true });
    }
  }
  throw new SwitchyardError('storage.folder_held', `the data folder ${folder} is being locked by too many processes at once`, { details: { folder } });
}

function lockedBy({ pid, command }: LockOwner, folder: string): SwitchyardError {
  const message = `the data folder ${folder} is in use by process ${pid} (${command}): stop that process, or set DATA_DIR to another folder`;
  return new SwitchyardError('storage.folder_held', message, { details: { pid, folder } });
}

/** Creates the file atomically with its text. @returns false when it exists */
async function create(path: string, text: string): Promise<boolean> {
  const temporary = await writeTemporary(path, text);
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

async function replace(path: string, text: string): Promise<void> {
  await rename(await writeTemporary(path, text), path);
}

async function writeTemporary(path: string, text: string): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  await writeFile(temporary, text, { flag: 'wx', mode: 0o600 });
  return temporary;
}

/** Null when there is no file. */
async function read(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Null when unreadable: locks are created atomically, so a machine crash tore it, and its process is dead. */
function parseLockOwner(text: string): LockOwner | null {
  try {
    return lockOwner.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

async function ownIdentity(): Promise<LockOwner> {
  const stat = await readStat(process.pid);
  return { pid: process.pid, startedAtTicks: stat?.startedAtTicks ?? null, command: process.argv.slice(0, 2).join(' ') };
}

/** Compares the start time, since pids are reused. Where it is unknown, any process with the pid counts. */
async function isRunning({ pid, startedAtTicks }: LockOwner): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs as another user.
    if (codeOf(error) !== 'EPERM') return false;
  }
  const stat = await readStat(pid);
  if (stat === null) return true;
  // Exited, but not reaped by its parent yet.
  if (stat.state === 'Z' || stat.state === 'X') return false;
  return startedAtTicks === null || stat.startedAtTicks === startedAtTicks;
}

/** From `/proc/<pid>/stat`; null when unreadable. */
async function readStat(pid: number): Promise<{ state: string; startedAtTicks: number } | null> {
  let text: string;
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The second field is the program's name in parentheses and may contain anything: split behind its end.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startedAtTicks = Number(fields[22 - 3]);
  return state === undefined || !Number.isSafeInteger(startedAtTicks) ? null : { state, startedAtTicks };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
