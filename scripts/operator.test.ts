import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
let clone: string;

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'switchyard-operator-'));
  cpSync(join(root, 'package.json'), join(clone, 'package.json'));
  cpSync(join(root, 'scripts'), join(clone, 'scripts'), { recursive: true });
});
afterEach(() => rmSync(clone, { recursive: true }));

/** Runs what `npm run operator --` runs. */
function operate(...args: string[]) {
  const { scripts } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8'));
  const [, program] = /^exec node (\S+)$/.exec(scripts.operator) ?? [];
  return spawnSync(process.execPath, [join(clone, program ?? ''), ...args], { encoding: 'utf8', env: {} });
}

it('prints what to do without a build', () => {
  const { status, stdout, stderr } = operate('dead-letters', 'list');

  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toBe('There is no build in dist/ yet. This makes one:\n  node scripts/prepare.mjs --build\n');
});

it('reads the .env of the current folder, which the environment overrules', () => {
  const folder = join(clone, 'dist/services/operator');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'main.js'), 'console.log([process.env.AGENT_API_KEY, process.env.DATA_DIR].join());');
  writeFileSync(join(clone, '.env'), 'AGENT_API_KEY=of-the-file\nDATA_DIR=of-the-file\n');
  const run = (program: string, ...args: string[]) =>
    spawnSync(process.execPath, [join(clone, program), ...args], { encoding: 'utf8', cwd: clone, env: { DATA_DIR: 'given' } }).stdout;

  expect(run('scripts/operator.mjs', 'doctor')).toBe('of-the-file,given\n');
  expect(run('scripts/switchyard.mjs', 'doctor')).toBe('of-the-file,given\n');
});

it('runs the build with unchanged arguments', () => {
  const folder = join(clone, 'dist/services/operator');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'main.js'), 'console.log(JSON.stringify(process.argv.slice(2))); process.exit(3);');
  const { status, stdout } = operate('dead-letters', 'replay', 'a b');

  expect({ status, stdout }).toEqual({ status: 3, stdout: '["dead-letters","replay","a b"]\n' });
});

it('names the program that was run: npm or switchyard', () => {
  writeFileSync(join(clone, 'tsconfig.build.json'), '{}');
  const run = (program: string, ...args: string[]) => spawnSync(process.execPath, [join(clone, program), ...args], { encoding: 'utf8', cwd: clone, env: {} });

  expect(run('scripts/start.mjs', '--port').stderr).toMatch(/^npm start takes no argument '--port'\..*: npm start -- --help lists them\.$/m);
  expect(run('scripts/switchyard.mjs', 'start', '--port').stderr).toMatch(/^switchyard start takes no argument .*: switchyard start --help lists them\.$/m);
  expect(run('scripts/switchyard.mjs', 'start', '--help').stdout).toContain('ROUTER_PORT=3001 switchyard start');
  expect(run('scripts/switchyard.mjs', 'ask', 'Hello').stderr).toContain('Start one with switchyard start in another terminal');
});
