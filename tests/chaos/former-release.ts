import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freeFolder } from '../helpers/free-folder.ts';
import { plainEnvironment, root } from '../helpers/run-program.ts';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** The commit that `deploy/former-release` names: that of the release before this one. */
export async function formerCommit(): Promise<string> {
  return (await readFile(join(root, 'deploy/former-release'), 'utf8')).trim();
}

/**
 * Builds a former release as its own clone would: its sources out of git's history, its packages, its build script.
 * @returns the folder, with `dist/`
 * @throws when the commit is not in the history, as in a clone without one
 */
export async function builtRelease(commit: string): Promise<string> {
  try {
    await run('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`]);
  } catch (cause) {
    throw new Error(`deploy/former-release names ${commit}, which is not in git's history here: an upgrade is rehearsed in a clone with the history`, {
      cause,
    });
  }
  const folder = join(await freeFolder('release'), 'clone');
  await mkdir(folder);
  const archive = `${folder}.tar`;
  await run('git', ['-C', root, 'archive', '--format=tar', `--output=${archive}`, commit]);
  await run('tar', ['-xf', archive, '-C', folder]);
  await run(process.execPath, ['scripts/prepare.mjs', '--build'], { cwd: folder, env: plainEnvironment(), maxBuffer: MAX_OUTPUT_BYTES });
  return folder;
}
