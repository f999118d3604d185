import { monotonicMs } from '../monotonic.mjs';
import { TokenCheck } from './token-check.mjs';

/** @typedef {import('../http/connection.mjs').Connection} Connection */

/**
 * @typedef {object} Stream
 * @property {number} begunMs
 * @property {number | null} firstTokenMs from the request to the first token; null: without a token
 * @property {import('./token-check.mjs').TokenCounts} counts
 * @property {string | null} failure why the stream is not complete: another status than 200, no `[DONE]`, a lost connection
 */

/** Of the last piece of a stream without its end: an error chunk says why. */
const LAST_CHARACTERS = 250;

/**
 * Requests one stream and reads it to its end.
 *
 * @param {Connection} connection
 * @param {{ request: Buffer, id: number, tokens: number, onTokens: (count: number) => void }} what `onTokens` with each piece that has tokens
 * @returns {Promise<Stream>}
 */
export function oneStream(connection, { request, id, tokens, onTokens }) {
  return new Promise((resolve) => {
    const check = new TokenCheck({ id, tokens });
    const begunMs = monotonicMs();
    /** @type {number | null} */
    let firstTokenMs = null;
    let status = 0;
    let refusal = '';
    let last = '';
    connection.send(request, {
      onStatus: (value) => {
        status = value;
      },
      onBody: (bytes) => {
        const text = bytes.toString('latin1');
        if (status !== 200) refusal += text;
        last = text;
        const found = check.push(text);
        if (found === 0) return;
        firstTokenMs ??= monotonicMs() - begunMs;
        onTokens(found);
      },
      onEnd: (error) => {
        const unfinished = check.isDone ? null : `the stream ended without [DONE], behind ${last.slice(-LAST_CHARACTERS).trim()}`;
        const failure = error?.message ?? (status === 200 ? unfinished : `answered ${status}: ${refusal}`);
        resolve({ begunMs, firstTokenMs, counts: check.counts(), failure });
      },
    });
  });
}
