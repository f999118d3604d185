import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { commands } from './package-folder.mjs';
import { exitCodes, ScriptError } from './run-script.mjs';

/**
 * @typedef {object} Server
 * @property {readonly string[]} urls one for each process of a cluster; empty without any
 * @property {string} starter the command that has started it, for messages
 * @property {boolean} isOfCluster whether it is a process of a cluster, which is not started again
 * @property {string} key that callers send
 * @property {string} keyLocation where the key was found, for messages
 */
/**
 * @typedef {{ variable: string } | { field: string } | null} KeyLocation as written by services/standalone/running-file.ts; null: no key is accepted
 */

/**
 * Finds the servers that `npm start` runs on a data folder, or `npm run cluster` with it. Keys come from the key file or the environment and are read on access.
 *
 * @param {Record<string, string | undefined>} environment
 * @returns {{ readonly router: Server, readonly agent: Server }}
 * @throws {ScriptError} with advice, when nothing runs or a key is missing
 */
export function findRunning(environment) {
  const folder = resolve(environment.DATA_DIR || 'data');
  const facts = readJson(join(folder, 'running.json'));
  if (facts === null || !isRunning(facts.pid)) {
    throw new ScriptError(
      `No Switchyard is running on the data folder ${folder}.\nStart one with ${commands.start} in another terminal, with the same DATA_DIR.`,
      exitCodes.unreachable,
    );
  }
  const isOfCluster = facts.kind === 'cluster';
  const starter = isOfCluster ? commands.cluster : commands.start;
  // A server of an earlier release names its only address.
  const server = (/** @type {{ url: string, urls?: string[], key: KeyLocation }} */ { url, urls = [url], key }) => {
    return { urls, starter, isOfCluster, ...keyAt(key, { folder, environment, starter }) };
  };
  return {
    get router() {
      return server(facts.router);
    },
    get agent() {
      return server(facts.agent);
    },
  };
}

/**
 * @param {KeyLocation} location
 * @param {{ folder: string, environment: Record<string, string | undefined>, starter: string }} of
 * @returns {{ key: string, keyLocation: string }}
 */
function keyAt(location, { folder, environment, starter }) {
  if (location === null) throw new ScriptError('The router accepts no key: every key of its configuration is disabled. Enable one there.', exitCodes.refused);
  if ('variable' in location) {
    const key = environment[location.variable];
    if (key) return { key, keyLocation: `$${location.variable}` };
    throw new ScriptError(
      `${starter} was started with ${location.variable}, which is not set here: set it to the same value, or put it into .env for both.`,
      exitCodes.refused,
    );
  }
  const path = join(folder, 'keys.json');
  const key = readJson(path)?.[location.field];
  if (typeof key !== 'string') throw new ScriptError(`${path} has no ${location.field}: restart ${starter} to generate it.`, exitCodes.refused);
  return { key, keyLocation: `${location.field} of ${path}` };
}

/** @param {string} path @returns {any} null: missing or unreadable */
function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}

/** @param {unknown} pid */
function isRunning(pid) {
  if (typeof pid !== 'number') return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs as another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
