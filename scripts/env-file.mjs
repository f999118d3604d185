import { readFileSync } from 'node:fs';
import { ScriptError } from './run-script.mjs';

/** A quoted value may have several lines. */
const QUOTES = ['"', "'", '`'];

/** Of the lines in SWITCHYARD_ENV_LINES, in characters: no process starts with a variable of more than 128 KiB (Linux) or 32 KiB (Windows). */
const MAX_LENGTH = 16 * 1024;

/**
 * @typedef {{ line: number, name: string | null, within?: number }} EnvLine counted from 1; name null: the line sets nothing; within: it looks like
 * NAME=value, but is part of the quoted value that begins in that line
 */

const SETTING = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/s;

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
  const { lines, settings } = parsed(textOf(path));
  const given = [...settings].filter(([name]) => environment[name] === undefined);
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
 * Reads what `parseEnv` of Node 22 and 24 reads. That of Node 20 joins a line that sets nothing, one of blanks or an indented comment to the name behind it.
 *
 * @param {string} text
 * @returns {{ lines: EnvLine[], settings: Map<string, string> }}
 */
function parsed(text) {
  const all = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  /** @type {EnvLine[]} */
  const lines = [];
  /** @type {Map<string, string>} */
  const settings = new Map();
  for (let index = 0; index < all.length; index += 1) {
    const line = all[index] ?? '';
    if (/^\s*(#|$)/.test(line)) continue;
    const [, name = null, rest = ''] = SETTING.exec(line) ?? [];
    lines.push({ line: index + 1, name });
    if (name === null) continue;
    const { value, last } = valueAt(all, index, rest);
    settings.set(name, value);
    lines.push(...settingsWithin(all, index, last));
    index = last;
  }
  return { lines, settings };
}

/** @param {string[]} all @param {number} first index of the line in which the value begins @param {string} rest of that line */
function valueAt(all, first, rest) {
  const quote = rest.charAt(0);
  if (!QUOTES.includes(quote)) return { value: rest.replace(/#.*$/s, '').trim(), last: first };
  const closes = all.findIndex((line, index) => (index === first ? rest.includes(quote, 1) : index > first && line.includes(quote)));
  // A quote that is not closed is part of the value.
  if (closes < 0) return { value: rest.trim(), last: first };
  const text = [rest, ...all.slice(first + 1, closes + 1)].join('\n');
  const value = text.slice(1, text.indexOf(quote, 1));
  return { value: quote === '"' ? value.replaceAll('\\n', '\n') : value, last: closes };
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
