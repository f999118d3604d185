import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare } from './prepare.mjs';
import { interruptible, runChild } from './run-child.mjs';
import { runScript, ScriptError } from './run-script.mjs';

const CLONE = fileURLToPath(new URL('..', import.meta.url));
/** Each release that `engines` allows, at its last version. */
const VERSIONS = ['20.20.2', '22.23.3', '24.21.0'];

await runScript(testDeep);

/**
 * Runs the deep tier on every supported Node release in turn, installed from npm in `.node`: node_modules is emptied when another release installs
 * the packages. `--node=22` runs one release alone; further arguments go to vitest.
 */
async function testDeep() {
  const [, major = null] = /^--node=(\d+)$/.exec(process.argv[2] ?? '') ?? [];
  const args = process.argv.slice(major === null ? 2 : 3);
  const versions = VERSIONS.filter((version) => major === null || version.startsWith(`${major}.`));
  if (versions.length === 0) throw new ScriptError(`--node has to be one of ${VERSIONS.map((version) => version.split('.')[0]).join(', ')}`);
  await prepare({ tests: true, build: true });
  /** @type {string[]} */
  const failed = [];
  await interruptible(async (signal) => {
    for (const version of versions) {
      const node = await programOf(version, signal);
      console.log(`\nNode ${version}: the deep tier`);
      if ((await run(node, args, signal)) !== 0) failed.push(version);
    }
  });
  if (failed.length === 0) return;
  console.error(`The deep tier failed on Node ${failed.join(', ')}.`);
  process.exitCode = 1;
}

/** @param {string} version @param {AbortSignal} signal @returns {Promise<string>} path of the program */
async function programOf(version, signal) {
  if (process.versions.node === version) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(CLONE, '.node', version);
  const program = join(folder, 'node_modules', name, 'bin', 'node');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  console.log(`Installing Node ${version} …`);
  const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', folder, `${name}@${version}`];
  const { code, output } = await runChild('npm', args, { cwd: folder, env: process.env, signal });
  if (code !== 0 || !existsSync(program)) throw new ScriptError(`Node ${version} could not be installed from the package ${name}:\n${output.trim()}`);
  return program;
}

/** First on the PATH, so that child processes use it too. @param {string} node @param {string[]} args @param {AbortSignal} signal */
async function run(node, args, signal) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(node, ['scripts/test.mjs', '--tier=deep', ...args], { cwd: CLONE, env, stdio: 'inherit' });
  signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  const [code] = await once(child, 'exit');
  return code;
}
