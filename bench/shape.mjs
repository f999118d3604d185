/**
 * The form of the upstream's answer, as the first path segment: so a target is configured by its base URL only.
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

/** @param {Shape} shape @returns {number} duration of a stream, from its first token on */
export function lengthMs({ tokens, perSecond }) {
  return perSecond === 0 ? 0 : (tokens / perSecond) * 1_000;
}
