import { readFileSync } from 'node:fs';
import util from 'node:util'; // `{ parseEnv }` would not link in an old Node, which has to reach `requireNode`
import { ScriptError } from './run-script.mjs';

/** A quoted value may have several lines. */
const QUOTES = ['"', "'", '`'];

/** Of the lines in SWITCHYARD_ENV_LINES, in characters: no process starts with a variable of more than 128 KiB (Linux) or 32 KiB (Windows). */
const MAX_LENGTH = 16 * 1024;

/**
 * @typedef {{ line: number, name: string | null, within?: number }} EnvLine counted from 1; name null: the line sets nothing; within: it looks like
 * NAME=value, but is part of the quoted value that begins in that line
 */

const SETTING = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/;

/**
 * Adds the settings in `.env` to the environment, which wins, also with empty variables. SWITCHYARD_ENV_FILE may name another file; afterwards it
 * names the file that settings were taken from, and is unset without any. SWITCHYARD_ENV_LINES has the lines of the file for notes at the start, as JSON
 * `{path, lines: EnvLine[], unlisted?: number}` without values; unlisted: how many more there are, in a file that is hardly one of settings.
 *
 * @param {NodeJS.ProcessEnv} environment
 * @throws {ScriptError} when the file exists and can't be read
 */
export function readEnvFile(environment) {
  const path = environment.SWITCHYARD_ENV_FILE || '.env';
  delete environment.SWITCHYARD_ENV_FILE;
  delete environment.SWITCHYARD_ENV_LINES;
  const { lines, readable } = linesOf(textOf(path));
  const given = Object.entries(util.parseEnv(readable)).filter(([name]) => environment[name] === undefined);
  for (const [name, value] of given) environment[name] = value;
  if (given.length > 0) environment.SWITCHYARD_ENV_FILE = path;
  if (lines.length > 0) environment.SWITCHYARD_ENV_LINES = JSON.stringify({ path, ...listed(lines) });
}

/** @param {EnvLine[]} lines */
function listed(lines) {
  let length = 0;
  const end = lines.findIndex((line) => {
    length += JSON.stringify(line).length;
    return length > MAX_LENGTH;
  });
  return end < 0 ? { lines } : { lines: lines.slice(0, end), unlisted: lines.length - end };
}

/**
 * `readable` is the text without lines that set nothing: with one, the parser of Node 20 loses the line behind it, too, or the rest of the file.
 *
 * @param {string} text
 * @returns {{ lines: EnvLine[], readable: string }}
 */
function linesOf(text) {
  const all = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  /** @type {EnvLine[]} */
  const lines = [];
  for (let index = 0; index < all.length; index += 1) {
    const line = (all[index] ?? '').trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name = null, value = ''] = SETTING.exec(line) ?? [];
    lines.push({ line: index + 1, name });
    if (name === null) {
      all[index] = '';
      continue;
    }
    const last = lastLineOf(value, all, index);
    lines.push(...settingsWithin(all, index, last));
    index = last;
  }
  return { lines, readable: all.join('\n') };
}

/** @param {string} value @param {string[]} all @param {number} index of the line in which the value begins */
function lastLineOf(value, all, index) {
  const quote = value.charAt(0);
  if (!QUOTES.includes(quote) || value.includes(quote, 1)) return index;
  const last = all.findIndex((line, at) => at > index && line.includes(quote));
  return last < 0 ? index : last;
}

/**
 * What looks like a setting in a value of several lines, as behind a quote that is not closed. `abc==` is none: keys in PEM end so.
 *
 * @param {string[]} all @param {number} first @param {number} last indexes of the value's lines
 * @returns {EnvLine[]}
 */
function settingsWithin(all, first, last) {
  return all.slice(first + 1, last + 1).flatMap((text, index) => {
    const [, name, value = ''] = SETTING.exec(text.trim()) ?? [];
    return name !== undefined && /[^\s='"`]/.test(value) ? [{ line: first + index + 2, name, within: first + 1 }] : [];
  });
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
