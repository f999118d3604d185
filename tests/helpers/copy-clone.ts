import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { freeFolder } from './free-folder.ts';
import { root } from './run-program.ts';

/** Absent from a clone before its first start. */
const MADE_HERE = new Set(['dist', 'dist.next', 'dist.former', 'data', '.git', '.node', '.prepare.lock', join('tests', 'screenshots')]);

/**
 * A copy of this clone as it is now, in a folder whose name has spaces: the sources alone, or with the packages too, so that a start in it
 * builds but installs nothing.
 */
export async function copyClone({ withPackages }: { withPackages: boolean }): Promise<string> {
  const copy = join(await freeFolder('copy'), 'a path with spaces');
  cpSync(root, copy, { recursive: true, filter: (path) => basename(path) !== 'node_modules' && !MADE_HERE.has(relative(root, path)) });
  if (withPackages) linkTree(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Hard links where the file system can, since packages are large and no start writes into them. */
function linkTree(from: string, to: string): void {
  if (spawnSync('cp', ['-al', from, to]).status === 0) return;
  if (existsSync(to)) spawnSync('rm', ['-r', to]);
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`copying ${from} failed: ${stderr}`);
}
