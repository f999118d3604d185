import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** @typedef {{ agentUrl: string, readyMs: number, key: string, stop: () => Promise<void> }} Started */

/** This clone. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
const POLL_MS = 10;

/**
 * `npm start` in a folder until it is ready.
 *
 * @param {string} folder of a clone @param {string} dataFolder @returns {Promise<Started>}
 */
export async function npmStart(folder, dataFolder) {
  const ready = `${dataFolder}.ready.json`;
  rmSync(ready, { force: true }); // of an earlier start on this folder
  const env = { ...process.env, ROUTER_PORT: '0', AGENT_PORT: '0', DATA_DIR: dataFolder, LOG_LEVEL: 'warn', SWITCHYARD_READY_FILE: ready };
  const startedMs = performance.now();
  const child = spawn('npm', ['start'], { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const exited = once(child, 'exit');
  while (!existsSync(ready)) {
    if (child.exitCode !== null) throw new Error(`npm start in ${folder} ended with ${child.exitCode}`);
    await delay(POLL_MS);
  }
  const readyMs = performance.now() - startedMs;
  const { agentUrl, pid } = JSON.parse(readFileSync(ready, 'utf8'));
  return {
    agentUrl,
    readyMs,
    key: JSON.parse(readFileSync(join(dataFolder, 'keys.json'), 'utf8')).agent_key,
    stop: async () => {
      process.kill(pid, 'SIGTERM');
      await exited;
    },
  };
}

/** A clone of what is committed here, or of an earlier commit. @param {string} folder @param {string} [commit] */
export async function clone(folder, commit) {
  await git('clone', '--quiet', root, folder);
  if (commit !== undefined) await git('-C', folder, 'checkout', '--quiet', commit);
}

/** Of the history that is here: with the pages the first time, and the one before. @returns {[before: string, after: string] | null} null: it is too short */
export function commitsAroundPages() {
  const log = (/** @type {string[]} */ ...args) =>
    spawnSync('git', ['-C', root, 'log', '--format=%H', ...args], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n');
  const after = log('--diff-filter=A', '--', 'web/package.json').at(-1) ?? '';
  const [, before] = after === '' ? [] : log('-2', after);
  return before === undefined ? null : [before, after];
}

/** @param {string[]} args */
async function git(...args) {
  const [code] = await once(spawn('git', args, { stdio: ['ignore', 'inherit', 'inherit'] }), 'exit');
  if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}`);
}

/** `switchyard --help`, in ms. */
export async function help() {
  const startedMs = performance.now();
  const [code] = await once(spawn(process.execPath, [join(root, 'scripts/switchyard.mjs'), '--help'], { stdio: 'ignore' }), 'exit');
  if (code !== 0) throw new Error(`switchyard --help ended with ${code}`);
  return performance.now() - startedMs;
}
