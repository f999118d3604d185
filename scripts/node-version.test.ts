import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { parseAst } from 'rolldown/parseAst';
import { expect, it } from 'vitest';
import { nodeSatisfies } from './node-version.mjs';

it('throws on an unreadable range instead of accepting every version', () => {
  expect(() => nodeSatisfies('20.20.2', '20.x')).toThrow(/engines\.node '20\.x'/);
  expect(() => nodeSatisfies('20.20.2', '')).toThrow(/engines\.node/);
});

it.each([
  ['18.20.8', '>=20.19', false],
  ['20.18.3', '>=20.19', false],
  ['20.19.0', '>=20.19', true],
  ['20.9.0', '>=20.19', false],
  ['24.0.0', '>=20.19', true],
  ['21.7.3', '^20.19.0 || >=22.12.0', false],
  ['22.11.0', '^20.19.0 || >=22.12.0', false],
  ['20.19.1', '^20.19.0 || >=22.12.0', true],
  ['22.12.0', '^20.19.0 || >=22.12.0', true],
  ['24.1.0-nightly', '^20.19.0 || >=22.12.0', true],
])('says of Node %s and %s: %s', (version, range, fits) => {
  expect(nodeSatisfies(version, range)).toBe(fits);
});

it.each([
  ['20.18.3', false],
  ['20.19.0', true],
  // Before 22.12 there is no require() of ES modules, which a package of the HTTP server needs.
  ['21.7.3', false],
  ['22.11.0', false],
  ['22.12.0', true],
  // The test runner does not support it.
  ['23.11.1', false],
  ['24.0.0', true],
  ['26.0.0', true],
])('runs on Node %s as its packages do: %s', (version, runs) => {
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(nodeSatisfies(version, engines.node)).toBe(runs);
});

it('has the same range in the lock file', () => {
  const [own, lock] = ['package.json', 'package-lock.json'].map((name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')));
  expect(lock.packages[''].engines).toEqual(own.engines);
});

/** Names that Node 18 and all later releases export: a static import of any other name ends an old Node with a stack before a line runs. */
const OF_NODE_18: Record<string, readonly string[]> = {
  'node:child_process': ['spawn', 'spawnSync'],
  'node:crypto': ['createHash', 'createHmac', 'randomBytes', 'randomUUID'],
  'node:events': ['once'],
  'node:fs': [
    'accessSync',
    'chmodSync',
    'chownSync',
    'constants',
    'copyFileSync',
    'existsSync',
    'linkSync',
    'lstatSync',
    'mkdirSync',
    'mkdtempSync',
    'readFileSync',
    'readdirSync',
    'realpathSync',
    'renameSync',
    'rmSync',
    'writeFileSync',
  ],
  'node:http': ['createServer'],
  'node:net': ['connect', 'createServer'],
  'node:os': ['constants', 'cpus', 'release', 'tmpdir', 'totalmem', 'userInfo'],
  'node:path': ['basename', 'delimiter', 'dirname', 'join', 'resolve'],
  'node:process': ['chdir'],
  'node:readline': ['createInterface'],
  'node:timers/promises': ['setTimeout'],
  'node:url': ['fileURLToPath'],
  'node:util': ['parseArgs'],
};

it('is checked by each script in an old Node, too, and before there are packages', () => {
  const files = ['scripts/', 'scripts/servers/', 'bench/'].flatMap((folder) => readdirSync(urlOf(folder)).map((name) => folder + name));
  const scripts = files.filter((path) => path.endsWith('.mjs') && /^(} else )?await runScript\(|^ +await runScript\(|^requireNode\(/m.test(textOf(path)));

  expect(scripts).toEqual(
    expect.arrayContaining(['start', 'ask', 'cluster', 'operator', 'switchyard', 'test', 'prepare'].map((name) => `scripts/${name}.mjs`)),
  );
  expect(Object.fromEntries(scripts.map((path) => [path, unsafeImports(urlOf(path))]).filter(([, found]) => found?.length))).toEqual({});
});

/** Static imports of a module, and of those that it imports, that fail to link in Node 18 or without packages. */
function unsafeImports(module: URL, seen = new Set<string>()): string[] {
  if (seen.has(module.href)) return [];
  seen.add(module.href);
  return importsOf(module).flatMap(({ from, names }) => {
    if (from.startsWith('.')) return unsafeImports(new URL(from, module), seen);
    if (!isBuiltin(from)) return [from];
    return names.filter((name) => name !== 'default' && !OF_NODE_18[from]?.includes(name)).map((name) => `${name} of ${from}`);
  });
}

function importsOf(module: URL): { from: string; names: string[] }[] {
  return parseAst(readFileSync(module, 'utf8')).body.flatMap((node) => {
    if (node.type === 'ExportAllDeclaration') return [{ from: node.source.value, names: [] }];
    if (node.type === 'ExportNamedDeclaration' && node.source !== null)
      return [{ from: node.source.value, names: node.specifiers.map(({ local }) => nameOf(local)) }];
    if (node.type !== 'ImportDeclaration') return [];
    const names = node.specifiers.flatMap((one) => (one.type === 'ImportSpecifier' ? [nameOf(one.imported)] : []));
    return [{ from: node.source.value, names }];
  });
}

function nameOf(name: { type: string; name?: string; value?: string }): string {
  return name.name ?? name.value ?? '';
}

function urlOf(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}

function textOf(path: string): string {
  return readFileSync(urlOf(path), 'utf8');
}
