import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeFolder } from '../helpers/free-folder.ts';
import { root } from '../helpers/run-program.ts';

interface Patch {
  /** Relative to `dist/`. */
  file: string;
  from: string;
  to: string;
}

/** A copy of the built program with texts replaced. @returns its folder @throws when a text to replace does not occur exactly once */
async function patchedCopy(...patches: readonly Patch[]): Promise<string> {
  const folder = await freeFolder('patched');
  await cp(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  await cp(join(root, 'package.json'), join(folder, 'package.json'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of patches) {
    const path = join(folder, 'dist', file);
    const pieces = (await readFile(path, 'utf8')).split(from);
    if (pieces.length !== 2) throw new Error(`${file} has ${pieces.length - 1} times what is to be replaced: ${from}`);
    await writeFile(path, pieces.join(to));
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
    file: 'actors/store/commit-statement.js',
    from: 'where parts.epoch = i.epoch and parts.commit_no = i.commit_no and parts.owner = i.owner',
    to: 'where true',
  },
  { file: 'actors/store/row-sets.js', from: event, to: `${event} on conflict do nothing` },
  { file: 'actors/store/row-sets.js', from: seen, to: `${seen} on conflict do nothing` },
];
/**
 * `commit.sending` is reached only by commits that append to a session's log, and the host is killed when the first of them is answered. A new
 * owner also commits redelivered commands, which only move the cursor: a customer can't read whether such a commit was fenced.
 */
const onlyEventCommit: readonly Patch[] = [
  { file: 'actors/store/commit-store.js', from: "failPoint('commit.sending');", to: "if (plan.events.length > 0) failPoint('commit.sending');" },
  { file: 'actors/store/commit-store.js', from: "failPoint('commit.stored');", to: "if (plan.events.length > 0) process.kill(process.pid, 'SIGKILL');" },
];

export function withoutFence(): Promise<string> {
  return patchedCopy(...noFence);
}

/** A host that stops before its first commit of events, and is killed behind it. */
export function killedAfterEvents(): Promise<string> {
  return patchedCopy(...onlyEventCommit);
}

export function killedAfterEventsWithoutFence(): Promise<string> {
  return patchedCopy(...onlyEventCommit, ...noFence);
}

/** A host whose machine version is one lower. */
export function olderVersion(): Promise<string> {
  return patchedCopy({ file: 'actors/kinds/snapshots.js', from: 'export const MACHINE_VERSION = ', to: 'export const MACHINE_VERSION = -1 + ' });
}
