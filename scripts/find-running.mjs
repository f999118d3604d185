import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { commands } from './package-folder.mjs';
import { exitCodes, ScriptError } from './run-script.mjs';

/**
 * @typedef {object} Server
 * @property {string} url
 * @property {string} key that callers send
 * @property {string} keyLocation where the key was found, for messages
 */
/**
 * @typedef {{ variable: string } | { field: string } | null} KeyLocation as written by services/standalone/running-file.ts; null: no key is accepted
 */

/**
 * Finds the servers that `npm start` runs on a data folder. Keys come from the key file or the environment and are read on access.
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
  const server = (/** @type {{ url: string, key: KeyLocation }} */ { url, key }) => ({ url, ...keyAt(key, { folder, environment }) });
  return {
    get router() {
      return server(facts.router);
    },
    get agent() {
      return server(facts.agent);
    },
  };
}

/** @param {KeyLocation} location @param {{ folder: string, environment: Record<string, string | undefined> }} of @returns {{ key: string, keyLocation: string }} */
function keyAt(location, { folder, environment }) {
  if (location === null) throw new ScriptError('The router accepts no key: every key of its configuration is disabled. Enable one there.', exitCodes.refused);
  if ('variable' in location) {
    const key = environment[location.variable];
    if (key) return { key, keyLocation: `$${location.variable}` };
    throw new ScriptError(
      `${commands.start} was started with ${location.variable}, which is not set here: set it to the same value, or put it into .env for both.`,
      exitCodes.refused,
    );
  }
  const path = join(folder, 'keys.json');
  const key = readJson(path)?.[location.field];
  if (typeof key !== 'string') throw new ScriptError(`${path} has no ${location.field}: restart ${commands.start} to generate it.`, exitCodes.refused);
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
