import { existsSync } from 'node:fs';
import { chdir } from 'node:process';
import { fileURLToPath } from 'node:url';

/** A clone, or the package that npm has installed from `npm pack`. */
export const packageFolder = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** A package has its build and not what makes it. */
export const isClone = existsSync(new URL('../tsconfig.build.json', import.meta.url));

/** How a printed command names the program. */
export const commands = isClone
  ? { start: 'npm start', cluster: 'npm run cluster', ask: 'npm run -s ask --' }
  : { start: 'switchyard start', cluster: 'switchyard cluster', ask: 'switchyard ask' };

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
