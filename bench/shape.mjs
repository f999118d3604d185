/**
 * The form of requests and answers. `vendor`: as OpenAI's chunks and its clients' requests are (upstream/vendor-answers.mjs, completions.mjs); `plain`:
 * the least that is valid, as all rows were measured before there were two.
 *
 * @typedef {'plain' | 'vendor'} Traffic
 */

/** @typedef {Traffic | 'tools' | 'reasoning'} AnswerForm `tools`: vendor traffic with functions, one of which is called; `reasoning`: the same with reasoning before the text */

/**
 * The form of the upstream's answer, as the first path segment: so a target is configured by its base URL only.
 *
 * @typedef {object} Shape
 * @property {number} tokens
 * @property {number} perSecond 0: all of them at once
 * @property {number} delayMs from the request to the first token, or to the whole answer
 * @property {AnswerForm} traffic
 */

/** @type {readonly Traffic[]} */
export const traffics = ['plain', 'vendor'];

/** @type {readonly AnswerForm[]} */
export const answerForms = [...traffics, 'tools', 'reasoning'];

/** @param {Shape} shape */
export function shapeName({ tokens, perSecond, delayMs, traffic }) {
  return `t${tokens}-r${perSecond}-d${delayMs}-${traffic}`;
}

/** @param {string} path of a request @returns {Shape | null} null: it names none */
export function shapeOf(path) {
  const [, tokens, perSecond, delayMs, name] = /^\/t(\d+)-r(\d+)-d(\d+)-([a-z]+)\//.exec(path) ?? [];
  const traffic = answerForms.find((one) => one === name);
  return traffic === undefined ? null : { tokens: Number(tokens), perSecond: Number(perSecond), delayMs: Number(delayMs), traffic };
}

/** @param {Shape} shape @returns {number} duration of a stream, from its first token on */
export function lengthMs({ tokens, perSecond }) {
  return perSecond === 0 ? 0 : (tokens / perSecond) * 1_000;
}
