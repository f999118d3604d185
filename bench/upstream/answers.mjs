import { plainAnswers } from './plain-answers.mjs';
import { reasoningAnswers } from './reasoning-answers.mjs';
import { toolAnswers } from './tool-answers.mjs';
import { vendorAnswers } from './vendor-answers.mjs';

/** @typedef {{ usage: boolean }} Asked whether the request asked for usage in a stream */

/**
 * @typedef {object} Answers in one form
 * @property {(tokens: number) => string} whole the bytes of a whole answer
 * @property {() => string} head what a stream begins with, before any token
 * @property {(id: number, number: number, asked: Asked) => string} token
 * @property {(tokens: number, asked: Asked) => string} end
 */

/** Precedes the id of a stream in a request to the upstream, which puts the id into each token, so that tokens of other streams are detected. */
const MARK = /bench-(\d+)-/;

/** @type {Record<import('../shape.mjs').AnswerForm, Answers>} */
export const answersIn = { plain: plainAnswers, vendor: vendorAnswers, tools: toolAnswers, reasoning: reasoningAnswers };

/** @param {number} id of the stream, unique in the run */
export function markOf(id) {
  return `bench-${id}-`;
}

/** @param {string} body the beginning of a request's @returns {number} 0 without an id */
export function markedId(body) {
  return Number(MARK.exec(body)?.[1] ?? 0);
}
