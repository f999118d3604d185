import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { SwitchyardError } from '../errors/switchyard-error.ts';

const LOCK_NAME = 'switchyard.lock';

/** Tries at one lock. Each means that somebody else took or released it between two of our steps. */
const MAX_TRIES = 100;

/** Locks on locks. A second one stands only where a process died within the millisecond of taking over, and so on. */
const MAX_DEPTH = 8;

/** What stands in a lock file. */
const holder = z.object({
  pid: z.number().int().positive(),
  /** When the process started, in clock ticks since the machine did; null where the system does not tell. */
  startedAtTicks: z.number().nullable(),
  command: z.string(),
});
type Holder = z.infer<typeof holder>;

/**
 * Makes the folder when missing, readable by its owner alone, and keeps every other process out of it until `release`. A process that
 * died without releasing, by `kill -9` too, holds nothing; one that lives holds the folder however old its lock is.
 *
 * The lock tells processes of one machine apart, not containers that share a folder.
 *
 * @throws `storage.folder_held` naming the process that holds it; `config.invalid` when the folder can't be made or written
 */
export async function lockDataFolder(folder: string): Promise<{ release(): Promise<void> }> {
  const path = resolve(folder);
  const lock = join(path, LOCK_NAME);
  // The nonce makes each lock unlike every other one, so that a lock can be named by its text.
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
      // Nobody takes a lock from a living process, so what is ours now stays ours until it is removed.
      if ((await read(lock)) === own) await rm(lock, { force: true });
    },
  };
}

/**
 * Takes a lock, also from a dead holder. A dead lock is never removed, for between looking at it and removing it a quicker process
 * may have put its own in its place. It is replaced, and only by who holds the guard: a lock of its own, named by the dead one's text.
 * Of all who saw that text, one gets the guard; it looks again, and if the dead lock is still there, nobody else can have changed it.
 * Who gets the guard later finds another text and begins anew. A guard whose holder died is taken over in the same way.
 */
async function acquire(lock: string, own: string, folder: string, depth: number): Promise<void> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt += 1) {
    if (await create(lock, own)) return;
    const found = await read(lock);
    if (found === null) continue;
    const other = parseHolder(found);
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
  throw new SwitchyardError('storage.folder_held', `the data folder ${folder} is being taken by too many processes at once`, { details: { folder } });
}

function lockedBy({ pid, command }: Holder, folder: string): SwitchyardError {
  const message = `the data folder ${folder} is in use by process ${pid} (${command}): stop that process, or choose another folder`;
  return new SwitchyardError('storage.folder_held', message, { details: { pid, folder } });
}

/** Puts the whole text there at once, or nothing. @returns false when a file stands there already */
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

/** The file's text, or null when there is none. */
async function read(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Null for a file that says nothing: locks appear whole, so it was torn by a crash of the machine, which no holder outlived. */
function parseHolder(text: string): Holder | null {
  try {
    return holder.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

async function ownIdentity(): Promise<Holder> {
  const stat = await readStat(process.pid);
  return { pid: process.pid, startedAtTicks: stat?.startedAtTicks ?? null, command: process.argv.slice(0, 2).join(' ') };
}

/** Whether the very process that wrote the lock still runs. Where its start can't be compared, a living process of its number will do. */
async function isRunning({ pid, startedAtTicks }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and belongs to another user.
    if (codeOf(error) !== 'EPERM') return false;
  }
  const stat = await readStat(pid);
  if (stat === null) return true;
  // A zombie has ended and only waits for its parent to take note.
  if (stat.state === 'Z' || stat.state === 'X') return false;
  return startedAtTicks === null || stat.startedAtTicks === startedAtTicks;
}

/** From `/proc/<pid>/stat`; null where there is none to read. */
async function readStat(pid: number): Promise<{ state: string; startedAtTicks: number } | null> {
  let text: string;
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The second field is the program's name in brackets and may hold anything, so count from its end: what follows is the third field.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startedAtTicks = Number(fields[22 - 3]);
  return state === undefined || !Number.isSafeInteger(startedAtTicks) ? null : { state, startedAtTicks };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
