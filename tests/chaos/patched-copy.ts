import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeFolder } from '../helpers/free-folder.ts';
import { root } from '../helpers/run-program.ts';

interface Patch {
  /** Below `dist/`. */
  file: string;
  from: string;
  to: string;
}

/** A copy of the built program with something changed in it. @returns its folder @throws when a text that is to be replaced is not there once */
async function patchedCopy(...patches: Patch[]): Promise<string> {
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

/**
 * A host whose commits are accepted whoever owns the partition. The keys of events and seen commands would still stop most of what it sends
 * too late, by chance of what is in it, so they say nothing either.
 */
export function withoutFence(): Promise<string> {
  const [statement, rows] = ['actors/runtime/commit-statement.js', 'actors/runtime/row-sets.js'];
  const [event, seen] = ['i.body::json, i.created_at from ${from}', 'i.command_id, i.answer::json from ${from}'];
  return patchedCopy(
    { file: statement, from: 'where parts.epoch = i.epoch and parts.commit_no = i.commit_no', to: 'where true' },
    { file: rows, from: event, to: `${event} on conflict do nothing` },
    { file: rows, from: seen, to: `${seen} on conflict do nothing` },
  );
}

/** A host whose machines are of the version before. */
export function olderVersion(): Promise<string> {
  return patchedCopy({ file: 'actors/runtime/snapshots.js', from: 'export const MACHINE_VERSION = ', to: 'export const MACHINE_VERSION = -1 + ' });
}
