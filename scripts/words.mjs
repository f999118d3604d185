import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { allowedPhrases, exceptions, refusedWords } from './refused-words.mjs';
import { runScript } from './run-script.mjs';

const CLONE = fileURLToPath(new URL('..', import.meta.url));

/** @typedef {'files' | 'identifiers' | 'comments' | 'texts' | 'docs'} Kind where a word occurs; texts are string literals */
/** @typedef {{ file: string, line: number, kind: Kind, word: string }} Found */

const kinds = /** @type {const} */ (['files', 'identifiers', 'comments', 'texts', 'docs']);

/** Comments, string literals and identifiers. Approximate: regular expressions that contain quotes are read as strings. */
const PIECES = /(\/\*[\s\S]*?\*\/|(?<![:'"`\\])\/\/[^\n]*)|('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`)|([A-Za-z_$][\w$]*)/g;

const usage = `Usage: npm run words                     counts of refused words, by folder and kind of text
       npm run words -- --list bus        each occurrence below a path
       npm run words -- --word house      each occurrence of one word

scripts/refused-words.mjs lists the words, and the phrases and files in which they are allowed. docs/glossary.md has the words to
use instead. No check depends on this command.`;

await runScript(async () => {
  const { values, positionals } = parseArgs({
    options: { list: { type: 'boolean' }, word: { type: 'string' }, help: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.help === true) {
    console.log(usage);
    return;
  }
  const [under = ''] = positionals;
  const found = trackedFiles()
    .filter((file) => file.startsWith(under))
    .flatMap(wordsIn)
    .filter(({ word }) => values.word === undefined || word === values.word);
  if (values.list === true || values.word !== undefined) {
    for (const { file, line, kind, word } of found) console.log(`${file}:${line}  ${kind}  ${word}`);
  } else printTable(found);
  console.log(`${found.length} refused words`);
});

/** @returns {string[]} */
function trackedFiles() {
  const { stdout } = spawnSync('git', ['ls-files'], { cwd: CLONE, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
  const isOurs = (/** @type {string} */ file) => /\.(ts|mjs|md|sql|html)$/.test(file) && !isList(file) && !isException(file);
  return stdout.split('\n').filter(isOurs);
}

/** @param {string} file */
function isException(file) {
  return exceptions.some(({ under }) => file.startsWith(under));
}

/** The word list itself. @param {string} file */
function isList(file) {
  return file === 'scripts/refused-words.mjs';
}

/** @param {string} file @returns {Found[]} */
function wordsIn(file) {
  const text = readFileSync(join(CLONE, file), 'utf8');
  const inName = refusedIn(partsOf(file)).map((word) => ({ file, line: 0, kind: /** @type {Kind} */ ('files'), word }));
  if (!/\.(ts|mjs)$/.test(file)) {
    const isDoc = file.endsWith('.md');
    return [...inName, ...proseWords(text, 0).map(({ line, word }) => ({ file, line, kind: /** @type {Kind} */ (isDoc ? 'docs' : 'comments'), word }))];
  }
  return [...inName, ...codeWords(text).map((one) => ({ file, ...one }))];
}

/** @param {string} source @returns {{ line: number, kind: Kind, word: string }[]} */
function codeWords(source) {
  // First of all: a phrase may span several pieces.
  const text = withoutAllowed(source);
  const found = [];
  for (const { 0: piece, 1: comment, 2: literal, 3: identifier, index } of text.matchAll(PIECES)) {
    const line = lineAt(text, index);
    if (identifier !== undefined) for (const word of refusedIn(partsOf(identifier))) found.push({ line, kind: /** @type {Kind} */ ('identifiers'), word });
    else if (!isImport(piece)) {
      const kind = /** @type {Kind} */ (comment !== undefined ? 'comments' : 'texts');
      for (const one of proseWords(literal ?? piece, line - 1)) found.push({ ...one, kind });
    }
  }
  return found;
}

/** @param {string} piece */
function isImport(piece) {
  return /^['"](?:#|\.{1,2}\/|node:)/.test(piece);
}

/** @param {string} text @param {number} before lines before it @returns {{ line: number, word: string }[]} */
function proseWords(text, before) {
  return text.split('\n').flatMap((line, index) => {
    return refusedIn(partsOf(withoutAllowed(line))).map((word) => ({ line: before + index + 1, word }));
  });
}

/** @param {string} text */
function withoutAllowed(text) {
  return allowedPhrases.reduce((rest, phrase) => rest.replaceAll(phrase, ''), text);
}

/** @param {string} name `camelCase`, `kebab-case`, `CONSTANT_CASE` or prose @returns {string[]} */
function partsOf(name) {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** @param {string[]} parts @returns {string[]} */
function refusedIn(parts) {
  return parts.filter((part) => refusedWords.has(part));
}

/** @param {string} text @param {number} index */
function lineAt(text, index) {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** @param {Found[]} found */
function printTable(found) {
  const rooms = new Map();
  for (const { file, kind } of found) {
    const room = roomOf(file);
    const counts = rooms.get(room) ?? Object.fromEntries(kinds.map((one) => [one, 0]));
    counts[kind] += 1;
    rooms.set(room, counts);
  }
  const row = (/** @type {readonly (string | number)[]} */ cells) =>
    cells.map((cell, at) => (at === 0 ? String(cell).padEnd(34) : String(cell).padStart(12))).join('');
  console.log(row(['room', ...kinds]));
  for (const [room, counts] of [...rooms].sort(([one], [other]) => (one < other ? -1 : 1))) console.log(row([room, ...kinds.map((kind) => counts[kind])]));
}

/** Tests are counted apart from product code. @param {string} file */
function roomOf(file) {
  const [first = '', second = ''] = file.split('/');
  const room = ['services', 'shared'].includes(first) && second.includes('.') === false ? `${first}/${second}` : file.includes('/') ? first : '.';
  return /\.test\.ts$|\/test-support\/|conformance/.test(file) ? `${room} (tests)` : room;
}
