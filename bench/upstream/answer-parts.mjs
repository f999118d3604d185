/**
 * Text of one token: whose stream it is of, and its number.
 *
 * @param {number} id
 * @param {number} number from 0
 */
export function tokenText(id, number) {
  return `${id}.${number} `;
}

/** @param {number} tokens */
export function usageOf(tokens) {
  return { prompt_tokens: 9, completion_tokens: tokens, total_tokens: tokens + 9 };
}

/** A chunk of an HTTP body. @param {string} text without characters of more than one byte */
export function chunk(text) {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
