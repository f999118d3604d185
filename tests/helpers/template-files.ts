import { createHash } from 'node:crypto';
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Of what is made once and used by every run until its inputs change. */
export const CACHE = join(root, 'node_modules/.cache/switchyard-tests');

/** Of files, and of those in folders. @param paths relative to the root @param more what else decides */
export async function digestOf(paths: readonly string[], more = ''): Promise<string> {
  const hash = createHash('sha256').update(more);
  for (const path of paths) for (const file of await filesOf(join(root, path))) hash.update(file.slice(root.length)).update(await readFile(file));
  return hash.digest('hex').slice(0, 32);
}

/** The file itself, or the entries of the folder. */
export async function filesOf(path: string): Promise<string[]> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOTDIR' ? null : Promise.reject(error)));
  return names === null ? [path] : names.sort().map((name) => join(path, name));
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
