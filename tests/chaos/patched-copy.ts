import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cp, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freeFolder } from '../helpers/free-folder.ts';
import { root } from '../helpers/run-program.ts';

interface Patch {
  /** As it stands in `dist/programs/`, where strings have double quotes. */
  from: string;
  to: string;
}

/** A copy of the built programs with texts replaced. @returns its folder @throws when a text to replace does not occur exactly once in all of them */
async function patchedCopy(...patches: readonly Patch[]): Promise<string> {
  const folder = await freeFolder('patched');
  // By another process: `fs.cp` takes several turns of the event loop for each of thousands of files, which under load are minutes.
  await promisify(execFile)('cp', ['-R', join(root, 'dist'), folder]);
  await cp(join(root, 'package.json'), join(folder, 'package.json'));
  for (const name of ['node_modules', 'examples']) await symlink(join(root, name), join(folder, name));
  const programs = join(folder, 'dist/programs');
  const texts = new Map<string, string>();
  // In one tick of the event loop, for the same reason.
  for (const name of readdirSync(programs).filter((name) => name.endsWith('.js'))) texts.set(name, readFileSync(join(programs, name), 'utf8'));
  for (const { from, to } of patches) {
    const found = [...texts].flatMap(([name, text]) => Array.from({ length: text.split(from).length - 1 }, () => name));
    const [name = ''] = found;
    if (found.length !== 1) throw new Error(`the programs have ${found.length} times what is to be replaced: ${from}`);
    texts.set(
      name,
      (texts.get(name) ?? '').replace(from, () => to),
    );
    await writeFile(join(programs, name), texts.get(name) ?? '');
  }
  return folder;
}

const [event, seen] = ['i.body::json, i.created_at from ${from}', 'i.command_id, i.answer::json from ${from}'];
/**
 * Commits are accepted although another host owns the partition. The keys of events and processed commands would still refuse most late
 * commits, depending on what is in them, so those conflicts are ignored too.
 */
const noFence: readonly Patch[] = [
  {
    from: 'where parts.epoch = i.epoch and parts.commit_no = i.commit_no and parts.owner = i.owner',
    to: 'where true',
  },
  { from: event, to: `${event} on conflict do nothing` },
  { from: seen, to: `${seen} on conflict do nothing` },
];
/** Sent by `interimOwnerKilled` alone. */
export const FIRST_MESSAGE = 'the first message of a host that is paused';
const hasFirstMessage = `plan.events.some(({ event }) => event.text === ${JSON.stringify(FIRST_MESSAGE)})`;
/**
 * `commit.sending` is reached only by the commit of that message, and the host is killed when it is answered. A new owner has other commits: of commands that
 * are delivered again and only move the cursor, and of what a fault before has left to do. In those a customer can't read whether the commit was fenced.
 */
const onlyFirstMessage: readonly Patch[] = [
  { from: 'failPoint("commit.sending");', to: `if (${hasFirstMessage}) failPoint("commit.sending");` },
  { from: 'failPoint("commit.stored");', to: `if (${hasFirstMessage}) process.kill(process.pid, 'SIGKILL');` },
];

export function withoutFence(): Promise<string> {
  return patchedCopy(...noFence);
}

/** A host that stops before the commit of `FIRST_MESSAGE`, and is killed behind it. */
export function killedAfterFirstMessage(): Promise<string> {
  return patchedCopy(...onlyFirstMessage);
}

export function killedAfterFirstMessageWithoutFence(): Promise<string> {
  return patchedCopy(...onlyFirstMessage, ...noFence);
}

/** A host whose machine version is one lower. */
export function olderVersion(): Promise<string> {
  return patchedCopy({ from: 'const MACHINE_VERSION = ', to: 'const MACHINE_VERSION = -1 + ' });
}

/** A router worker that executes at most this number of client calls at once. A test can occupy all slots with few calls. */
export function withCallSlots(slots: number): Promise<string> {
  return patchedCopy({ from: 'clientCalls: 1024,', to: `clientCalls: ${slots},` });
}
