import { setTimeout as delay } from 'node:timers/promises';
import { lastingConnection } from '../http/request.mjs';
import { lengthMs } from '../shape.mjs';
import { nextId } from './next-id.mjs';
import { oneStream } from './one-stream.mjs';

/** @typedef {import('./one-stream.mjs').Stream} Stream */

/** Its multiples are spread evenly over the length of a stream, and over the time between two tokens: at equal steps many streams would be in phase. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * Begins the slots, each with its own connection. A slot begins its next stream as soon as the last has ended.
 *
 * @param {{ address: import('../http/connection.mjs').Address, requestOf: (id: number) => Buffer, shape: import('../shape.mjs').Shape, streams: number }} load `requestOf`: its bytes, with that id in it
 */
export function holdStreams({ address, requestOf, shape, streams }) {
  const length = lengthMs(shape);
  /** @type {Stream[]} */
  const ended = [];
  let tokens = 0;
  let isOver = false;
  const onTokens = (/** @type {number} */ count) => {
    tokens += count;
  };
  const connections = Array.from({ length: streams }, () => lastingConnection(address));
  const slots = connections.map(async (lasting, index) => {
    await delay(((index * GOLDEN_RATIO) % 1) * length);
    while (!isOver) {
      const id = nextId();
      const stream = await lasting.get().then(
        (connection) => oneStream(connection, { request: requestOf(id), id, tokens: shape.tokens, onTokens }),
        (error) => notBegun(error, shape.tokens),
      );
      ended.push(stream);
      if (stream.failure !== null) await delay(length / 10); // a refusing target must not make the generator spin
    }
    lasting.leave();
  });
  return {
    tokens: () => tokens,
    beginNoMore: () => {
      isOver = true;
    },
    /** Waits for those in flight. @param {number} timeoutMs then they are closed, and missing tokens count as lost */
    ended: async (timeoutMs) => {
      const cut = setTimeout(() => connections.forEach(({ leave }) => void leave('the bench cut it off: it did not end in time')), timeoutMs);
      await Promise.all(slots);
      clearTimeout(cut);
      return ended;
    },
  };
}

/** @param {Error} error @param {number} tokens @returns {Stream} */
function notBegun(error, tokens) {
  return { begunMs: 0, firstTokenMs: null, counts: { delivered: 0, lost: tokens, doubled: 0, reordered: 0, foreign: 0 }, failure: error.message };
}
