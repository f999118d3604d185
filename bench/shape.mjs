/**
 * What the upstream answers, as the first segment of the path: so any target is told by nothing but another base URL.
 *
 * @typedef {object} Shape
 * @property {number} tokens
 * @property {number} perSecond 0: all of them at once
 * @property {number} delayMs from the request to the first token, or to the whole answer
 */

/** @param {Shape} shape */
export function shapeName({ tokens, perSecond, delayMs }) {
  return `t${tokens}-r${perSecond}-d${delayMs}`;
}

/** @param {string} path of a request @returns {Shape | null} null: it names none */
export function shapeOf(path) {
  const [, tokens, perSecond, delayMs] = /^\/t(\d+)-r(\d+)-d(\d+)\//.exec(path) ?? [];
  return tokens === undefined ? null : { tokens: Number(tokens), perSecond: Number(perSecond), delayMs: Number(delayMs) };
}

/** @param {Shape} shape @returns {number} how long a stream of it takes, from its first token on */
export function lengthMs({ tokens, perSecond }) {
  return perSecond === 0 ? 0 : (tokens / perSecond) * 1_000;
}
