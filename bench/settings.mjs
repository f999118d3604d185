/** @typedef {import('./shape.mjs').Shape} Shape */
/** @typedef {{ warmMs: number, measureMs: number }} Times */

/**
 * @typedef {object} Settings how long and how much; what is measured is the same
 * @property {number} rounds measurements of each target, the targets in turn
 * @property {Times} whole
 * @property {Times} single one request, or one turn, at a time
 * @property {Times & { shape: Shape, streams: number }} tokens
 * @property {Times & { shape: Shape, streams: number }} streams
 * @property {{ shape: Shape, clients: number }} leaving
 * @property {Times & { sessions: number }} turns
 * @property {{ polls: number, measureMs: number }} polls
 */

/**
 * A whole answer is one sentence, as in providers' own benchmarks, and one chunk is the least that a streaming upstream can
 * send. Switchyard always asks its upstreams for streams.
 *
 * @type {Shape}
 */
export const wholeShape = { tokens: 1, perSecond: 0, delayMs: 0 };
/** The model call of a durable turn. @type {Shape} */
export const turnShape = { tokens: 1, perSecond: 0, delayMs: 20 };
/** The same as the first, in an answer of a few paragraphs. @type {Shape} */
export const longShape = { tokens: 200, perSecond: 0, delayMs: 0 };

/** @type {Settings} */
export const fullSettings = {
  rounds: 3,
  whole: { warmMs: 8_000, measureMs: 10_000 },
  single: { warmMs: 2_000, measureMs: 6_000 },
  tokens: { shape: { tokens: 250, perSecond: 50, delayMs: 20 }, streams: 200, warmMs: 6_000, measureMs: 10_000 },
  streams: { shape: { tokens: 60, perSecond: 10, delayMs: 20 }, streams: 1_000, warmMs: 7_000, measureMs: 8_000 },
  leaving: { shape: { tokens: 600, perSecond: 10, delayMs: 20 }, clients: 200 },
  // Hundreds of turns do not make a process warm: a fifth of its CPU would be the compiler's.
  turns: { sessions: 2_000, warmMs: 20_000, measureMs: 12_000 },
  polls: { polls: 10_000, measureMs: 30_000 },
};

/** Smoke test: too short for meaningful figures. @type {Settings} */
export const quickSettings = {
  rounds: 1,
  whole: { warmMs: 1_500, measureMs: 2_500 },
  single: { warmMs: 500, measureMs: 1_500 },
  tokens: { shape: { tokens: 75, perSecond: 50, delayMs: 20 }, streams: 200, warmMs: 2_000, measureMs: 2_000 },
  streams: { shape: { tokens: 20, perSecond: 10, delayMs: 20 }, streams: 1_000, warmMs: 2_500, measureMs: 2_500 },
  leaving: { shape: { tokens: 600, perSecond: 10, delayMs: 20 }, clients: 200 },
  turns: { sessions: 100, warmMs: 1_500, measureMs: 3_000 },
  polls: { polls: 1_000, measureMs: 30_000 },
};

/** Every shape of a run: Switchyard has a model for each. @param {Settings} settings */
export function shapesOf({ tokens, streams, leaving }) {
  return [wholeShape, longShape, tokens.shape, streams.shape, leaving.shape];
}
