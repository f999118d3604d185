import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ScriptError } from './run-script.mjs';

/**
 * Adds the settings of the file `.env` in the working folder to the environment, which wins where it has a variable, an empty one included.
 * A program that starts this one may name another file in SWITCHYARD_ENV_FILE, or an empty one; afterwards it is the file that was read,
 * and is not there when there was none.
 *
 * @param {NodeJS.ProcessEnv} environment
 * @throws {ScriptError} when there is a file and it can't be read
 */
export function readEnvFile(environment) {
  const path = environment.SWITCHYARD_ENV_FILE || '.env';
  delete environment.SWITCHYARD_ENV_FILE;
  const given = Object.entries(parseEnv(textOf(path))).filter(([name]) => environment[name] === undefined);
  for (const [name, value] of given) environment[name] = value;
  if (given.length > 0) environment.SWITCHYARD_ENV_FILE = path;
}

/** @param {string} path */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // A folder of that name is something else, such as an environment of Python.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EISDIR')) return '';
    throw new ScriptError(`${path} can't be read (${error instanceof Error ? error.message : error}): correct its rights, or take it away.`);
  }
}
