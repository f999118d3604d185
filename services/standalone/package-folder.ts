import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from './shell-word.ts';

/** `dist/` is a folder deeper than the sources. */
const places = ['../../', '../../../'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

/** Has package.json: a clone, a package that npm has installed, or an image's `/app`. */
const packageFolder = places.find((folder) => existsSync(join(folder, 'package.json'))) ?? process.cwd();

export const sampleManifestPath = join(packageFolder, 'examples/acme-support/manifest.yaml');
export const readmePath = join(packageFolder, 'README.md');

/** How `ask` is called in a shell. A package may be where no shell looks for commands, such as in npx's cache; a clone has it as an npm script. */
export function askCommand(folder: string = packageFolder): string {
  if (existsSync(join(folder, 'tsconfig.build.json'))) return 'npm run -s ask --';
  return `node ${shellWord(join(folder, 'scripts/switchyard.mjs'))} ask`;
}
