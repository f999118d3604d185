import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { alone, deepOnly, longest, needOwnProcess, needServers, slow, timed } from './test-projects.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const files = ['actors', 'bench', 'bus', 'client', 'scripts', 'services', 'shared', 'tests']
  .flatMap((room) => readdirSync(join(root, room), { recursive: true, encoding: 'utf8' }).map((path) => `${room}/${path.replaceAll('\\', '/')}`))
  .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules/'));
const isIn = (file: string, globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob));
const filesThat = (uses: RegExp) => files.filter((file) => uses.test(readFileSync(join(root, file), 'utf8')));

/** A glob without braces for each of the names in them. */
function alternatives(glob: string): string[] {
  const [braces, names] = /\{([^{}]*)\}/.exec(glob) ?? [];
  return braces === undefined || names === undefined ? [glob] : names.split(',').flatMap((name) => alternatives(glob.replace(braces, name)));
}

it('a test file that replaces timers, a module, a global or the environment has its own process', () => {
  const found = filesThat(/vi\.(?:useFakeTimers|mock|doMock|stubGlobal|stubEnv)\(/);

  expect(found.filter((file) => !isIn(file, [...needOwnProcess, ...needServers]))).toEqual([]);
  expect(found.length).toBeGreaterThan(15);
});

it('a test file that uses a server or the built program is listed as one', () => {
  const found = filesThat(
    /^import .* from '[^']*(?:servers\/test-services\.mjs|helpers\/(?:deployment-under-test|start-cluster|start-standalone)\.ts)'|^[^'`]*inject\('\w+Url'\)/m,
  );

  expect(found.filter((file) => !isIn(file, needServers))).toEqual([]);
  expect(found.length).toBeGreaterThan(30);
});

it('every list names existing files', () => {
  const globs = [...needServers, ...timed, ...alone, ...needOwnProcess, ...slow, ...longest, ...deepOnly].flatMap(alternatives);

  // Most are no pattern, and to match one takes much longer than to find a name.
  const names = new Set(files);
  expect(globs.filter((glob) => !names.has(glob) && !files.some((file) => matchesGlob(file, glob)))).toEqual([]);
});
