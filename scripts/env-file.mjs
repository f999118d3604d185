import { readFileSync } from 'node:fs';
import util from 'node:util'; // `{ parseEnv }` would not link in an old Node, which has to reach `requireNode`
import { ScriptError } from './run-script.mjs';

/**
 * Adds the settings in `.env` to the environment, which wins, also with empty variables. SWITCHYARD_ENV_FILE may name another file; afterwards it
 * names the file that settings were taken from, and is unset without any.
 *
 * @param {NodeJS.ProcessEnv} environment
 * @throws {ScriptError} when the file exists and can't be read
 */
export function readEnvFile(environment) {
  const path = environment.SWITCHYARD_ENV_FILE || '.env';
  delete environment.SWITCHYARD_ENV_FILE;
  const given = Object.entries(util.parseEnv(textOf(path))).filter(([name]) => environment[name] === undefined);
  for (const [name, value] of given) environment[name] = value;
  if (given.length > 0) environment.SWITCHYARD_ENV_FILE = path;
}

/** @param {string} path */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Such as a Python environment.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EISDIR')) return '';
    throw new ScriptError(`${path} can't be read (${error instanceof Error ? error.message : error}): correct its permissions, or remove it.`);
  }
}
