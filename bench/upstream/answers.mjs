import { plainAnswers } from './plain-answers.mjs';
import { vendorAnswers } from './vendor-answers.mjs';

/** @typedef {{ usage: boolean }} Asked whether the request asked for usage in a stream */

/**
 * @typedef {object} Answers in one traffic
 * @property {(tokens: number) => string} whole the bytes of a whole answer
 * @property {() => string} head what a stream begins with, before any token
 * @property {(id: number, number: number, asked: Asked) => string} token
 * @property {(tokens: number, asked: Asked) => string} end
 */

/** What stands in a request for the upstream to say who asks, so that a token can be told from that of another stream. */
const MARK = /bench-(\d+)-/;

/** @type {Record<import('../shape.mjs').Traffic, Answers>} */
export const answersIn = { plain: plainAnswers, vendor: vendorAnswers };

/** @param {number} id of whoever asks, unique in the run */
export function markOf(id) {
  return `bench-${id}-`;
}

/** @param {string} body the beginning of a request's @returns {number} 0: nobody who is known */
export function markedId(body) {
  return Number(MARK.exec(body)?.[1] ?? 0);
}
