import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folders that are compiled. */
export const rooms = /** @type {const} */ (['client', 'services', 'actors', 'bus', 'shared']);

/** The folders that are copied as they are. */
export const dataFolders = /** @type {const} */ (['catalogue', 'schemas', 'web/built']);

/** Never compiled into dist/. Keep in step with tsconfig.build.json and .dockerignore. */
export const onlyForTests = /** @type {const} */ (['**/*.test.ts', '**/test-support', '**/__fixtures__', '**/conformance', '**/conformance.ts']);

/**
 * Hash of all inputs of node_modules/: the same stamp means the same packages.
 *
 * @param {string} folder of package.json and package-lock.json
 * @returns {string} hexadecimal
 */
export function installStamp(folder) {
  const hash = createHash('sha256').update(`${process.version} ${process.platform} ${process.arch}\n`);
  for (const name of ['package-lock.json', 'package.json', '.npmrc']) addFile(hash, name, join(folder, name));
  return hash.digest('hex');
}

/**
 * Hash of all inputs of dist/: the compiler and the bundler with their settings, and every source file but tests.
 *
 * @param {string} root
 * @returns {string} hexadecimal
 */
export function buildStamp(root) {
  const hash = createHash('sha256').update(installStamp(root));
  for (const name of ['tsconfig.json', 'tsconfig.build.json', 'scripts/build-programs.mjs']) addFile(hash, name, join(root, name));
  for (const folder of [...rooms, ...dataFolders]) {
    for (const path of builtFiles(root, folder)) addFile(hash, path, join(root, path));
  }
  return hash.digest('hex');
}

/**
 * @param {string} folder node_modules or dist
 * @returns {string | null} null when it was not finished
 */
export function readStamp(folder) {
  try {
    return readFileSync(join(folder, '.stamp'), 'utf8');
  } catch {
    return null;
  }
}

/** Marks a folder as finished, so call it last. @param {string} folder @param {string} stamp */
export function writeStamp(folder, stamp) {
  writeFileSync(join(folder, '.stamp'), stamp);
}

/**
 * The files of a folder that the build uses.
 *
 * @param {string} root
 * @param {string} folder
 * @returns {string[]} relative to the root
 */
export function builtFiles(root, folder) {
  return filesBelow(root, folder).filter((path) => !isOnlyForTests(path));
}

/** @param {string} path */
function isOnlyForTests(path) {
  const names = path.split(/[\\/]/);
  return onlyForTests.some((pattern) => {
    const name = pattern.slice('**/'.length);
    return name.startsWith('*') ? path.endsWith(name.slice(1)) : names.includes(name);
  });
}

/**
 * In a stable order, without hidden files, since editors create them.
 *
 * @param {string} root
 * @param {string} folder relative to the root
 * @returns {string[]} relative to the root
 */
function filesBelow(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.'))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(root, path) : [path];
    });
}

/** @param {import('node:crypto').Hash} hash @param {string} name @param {string} path */
function addFile(hash, name, path) {
  const content = readFileSync(path);
  // The length delimits the files unambiguously.
  hash.update(`${name} ${content.length}\n`).update(content);
}
