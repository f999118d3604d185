/** @typedef {import('./rounds.mjs').Need} Need */

/** @param {string} load @param {string[]} targets @returns {Need[]} */
export function need(load, targets) {
  return targets.map((target) => ({ target, load }));
}

/**
 * One request at a time. The load of many comes first (`rounds.mjs`), at each target that is compared: a process that has not had it is measured while it
 * compiles.
 *
 * @param {string[]} targets
 * @returns {Need[]}
 */
export function needSingle(targets) {
  return [...need('whole64', targets), ...need('whole1', targets)];
}

/** Streams that begin or end together, after many requests, and streams that do not. @param {string} load @param {string[]} targets @returns {Need[]} */
export function needStreams(load, targets) {
  return ['whole64', 'tokens', load].flatMap((one) => need(one, targets));
}
