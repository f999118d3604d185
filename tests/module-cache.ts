import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const UNUSED_AFTER_MS = 14 * 86_400_000;

/**
 * The folder of transformed modules. Each process of a test file asks the runner for each module that it imports, and the runner would encode the module
 * and its source map anew each time. A file is named by a hash of its module's text, of the configuration and of `moduleCacheKey`; vitest empties the folder when the
 * lock file has changed. A module that was edited leaves a file behind, so old ones are removed.
 */
export function moduleCache(root: string): string {
  const folder = join(root, 'node_modules/.cache/switchyard-modules');
  mkdirSync(folder, { recursive: true });
  const oldestMs = Date.now() - UNUSED_AFTER_MS;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    // Another run may remove it at the same time.
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? oldestMs) < oldestMs) rmSync(path, { force: true });
  }
  return folder;
}

/**
 * Part of a file's name, beside the module's text and the configuration of vitest: what package.json says of the modules that others import. A kept module has
 * the paths of those that it imports, and they follow from it.
 */
export function moduleCacheKey(root: string): string {
  const { name, type, imports, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return JSON.stringify({ name, type, imports, exports });
}
