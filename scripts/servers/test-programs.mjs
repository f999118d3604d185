import { ensurePrograms } from './programs.mjs';

/** @typedef {import('./programs.mjs').Programs} Programs */

const purpose = 'The tests run against the real servers';
/** By name: a test file may start a hundred servers, and looking for a program runs it. @type {Map<keyof Programs, Promise<string>>} */
const found = new Map();

/** Finds or installs the programs that tests run. @param {(line: string) => void} [print] */
export function ensureTestPrograms(print = console.log) {
  return ensurePrograms(['nats', 'redis', 'postgresBin', 'chromium', 'prometheus', 'promtool', 'haproxy', 'zsh'], { purpose, print });
}

/** Path of one of them. @param {keyof Programs} name @returns {Promise<string>} */
export function testProgram(name) {
  const known = found.get(name);
  if (known !== undefined) return known;
  const path = ensurePrograms([name], { purpose }).then((programs) => programs[name]);
  found.set(name, path);
  return path;
}
