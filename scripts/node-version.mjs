import { readFileSync } from 'node:fs';

/** Exits with one sentence when Node is too old. Every script calls it first: an old Node would fail somewhere inside a package. */
export function requireNode() {
  const wanted = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).engines.node;
  if (nodeSatisfies(process.versions.node, wanted)) return;
  console.error(`Switchyard needs Node ${wanted}; this is Node ${process.versions.node} (${process.execPath}).`);
  process.exit(1);
}

/**
 * Whether a version satisfies a range in the two forms that `engines` uses, `>=a.b.c` and `^a.b.c`, joined by `||`. Missing numbers are zero.
 *
 * @param {string} version
 * @param {string} range
 * @returns {boolean}
 * @throws on any other form, since accepting an unknown range would disable the check
 */
export function nodeSatisfies(version, range) {
  return range.split('||').some((alternative) => {
    const form = /^(>=|\^)(\d+(?:\.\d+){0,2})$/.exec(alternative.trim());
    if (form === null) throw new Error(`package.json: engines.node '${range}' is not of the form '>=a.b.c || ^a.b.c'`);
    const sameMajor = numbersOf(version)[0] === numbersOf(form[2] ?? '')[0];
    return isAtLeast(numbersOf(version), numbersOf(form[2] ?? '')) && (form[1] === '>=' || sameMajor);
  });
}

/** @param {number[]} version @param {number[]} least */
function isAtLeast(version, least) {
  for (const index of [0, 1, 2]) {
    const difference = (version[index] || 0) - (least[index] || 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** @param {string} version */
function numbersOf(version) {
  return version.split('.').map((part) => Number.parseInt(part, 10));
}
