import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';

/** A clone, or the package that npm has installed from `npm pack`. */
export const packageFolder = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** A package has its build and not what makes it. */
export const isClone = existsSync(new URL('../tsconfig.build.json', import.meta.url));

/** In a clone either is there: messages name the one that was run. npm runs the scripts themselves. */
const isByNpm = isClone && !/^switchyard(\.mjs)?$/.test(basename(process.argv[1] ?? ''));

/** How a printed command names the program. `separator` stands before options. */
export const commands = isByNpm
  ? { start: 'npm start', cluster: 'npm run cluster', ask: 'npm run -s ask --', separator: ' --' }
  : { start: 'switchyard start', cluster: 'switchyard cluster', ask: 'switchyard ask', separator: '' };

/**
 * Makes a clone ready, and its folder the working folder, as npm does: relative paths of settings begin there. A package is ready, and works in the
 * folder in which it is started.
 *
 * @param {{ print?: (line: string) => void }} [options]
 */
export async function enterPackage(options = {}) {
  if (!isClone) return;
  chdir(packageFolder);
  const { prepare } = await import('./prepare.mjs');
  await prepare({ build: true, ...options });
}
