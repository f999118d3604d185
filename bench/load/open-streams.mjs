import { setTimeout as delay } from 'node:timers/promises';
import { median, quantile } from '../figures.mjs';
import { readUsage, total } from '../process-usage.mjs';
import { lengthMs } from '../shape.mjs';
import { perThousand } from './closed-loop.mjs';
import { Failures } from './failures.mjs';
import { holdStreams } from './held-streams.mjs';
import { usageWindow } from './usage-window.mjs';

/** @typedef {import('./one-stream.mjs').Stream} Stream */

/**
 * @typedef {object} StreamLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {(id: number) => Buffer} requestOf its bytes, with that id in it
 * @property {import('../shape.mjs').Shape} shape what the upstream answers
 * @property {number} streams open at once
 * @property {{ warmMs: number, measureMs: number }} times
 * @property {readonly import('../process-usage.mjs').Root[]} roots
 * @property {boolean} [memory] whether to measure what they cost in memory
 * @property {import('./usage-window.mjs').Hooks} [hooks]
 */

/** @typedef {{ count: number, expected: number, delivered: number, lost: number, doubled: number, reordered: number, foreign: number }} Integrity of the tokens of all streams */
/**
 * @typedef {object} StreamFigures
 * @property {Integrity} integrity
 * @property {number | null} firstTokenP50Ms of the streams that began within the window, as is
 * @property {number | null} firstTokenP99Ms
 * @property {number} cpuPerThousand seconds of CPU per 1,000 tokens that came within the window
 * @property {Record<string, number>} cpuByProcess the same, by process
 * @property {number} tokensWithin that came within the window
 * @property {number} tokensPerSecond
 * @property {number | null} memoryTotal bytes of all processes while the streams are open; null: not measured
 * @property {number | null} memoryPerThousand bytes per 1,000 open streams, all processes; null: not measured
 * @property {Failures} failures
 */

/** Beyond the length of a stream: the lateness that is allowed at its end. */
const END_TIMEOUT_MS = 60_000;
const MEMORY_EVERY_MS = 1_000;
const SETTLE_MS = 1_000;

/**
 * Holds a number of streams open: each slot begins a new one as soon as its stream has ended, and the slots begin spread over the length of a
 * stream, so that the load is the same at any moment. Every stream is read to its end, after the window too, and every token checked.
 *
 * @param {StreamLoad} load
 * @returns {Promise<StreamFigures>}
 */
export async function openStreams({ streams, times, roots, memory = false, hooks = {}, ...load }) {
  const { shape } = load;
  const memoryBefore = memory ? await settledMemory(roots) : 0;
  const slots = holdStreams({ streams, ...load });
  let tokensBefore = 0;
  let tokensWithin = 0;
  /** @type {number[]} */
  const memories = [];
  const sampling = setInterval(() => void (memory && memories.push(total(readUsage(roots)).memoryBytes)), MEMORY_EVERY_MS);
  const window = await usageWindow(roots, times, {
    onBegin: async () => {
      memories.length = 0;
      await hooks.onBegin?.();
      tokensBefore = slots.tokens();
    },
    onEnd: async () => {
      tokensWithin = slots.tokens() - tokensBefore;
      clearInterval(sampling);
      await hooks.onEnd?.();
    },
  }).finally(() => {
    clearInterval(sampling);
    slots.beginNoMore();
  });
  const ended = await slots.ended(lengthMs(shape) + END_TIMEOUT_MS);
  const firstTokens = ended.flatMap(({ begunMs, firstTokenMs }) =>
    begunMs >= window.fromMs && begunMs < window.toMs && firstTokenMs !== null ? [firstTokenMs] : [],
  );
  const memoryWithin = median(memories);
  return {
    integrity: integrityOf(ended, shape.tokens),
    firstTokenP50Ms: quantile(firstTokens, 0.5),
    firstTokenP99Ms: quantile(firstTokens, 0.99),
    cpuPerThousand: (window.cpuSeconds / tokensWithin) * 1_000,
    cpuByProcess: perThousand(window.cpuByProcess, tokensWithin),
    tokensWithin,
    tokensPerSecond: tokensWithin / window.seconds,
    memoryTotal: memoryWithin,
    memoryPerThousand: memoryWithin === null ? null : ((memoryWithin - memoryBefore) / streams) * 1_000,
    failures: failuresOf(ended),
  };
}

/** Memory of the processes before the streams are open. @param {readonly import('../process-usage.mjs').Root[]} roots */
async function settledMemory(roots) {
  await delay(SETTLE_MS);
  return total(readUsage(roots)).memoryBytes;
}

/** @param {readonly Stream[]} streams @param {number} tokens @returns {Integrity} */
function integrityOf(streams, tokens) {
  const all = { count: streams.length, expected: streams.length * tokens, delivered: 0, lost: 0, doubled: 0, reordered: 0, foreign: 0 };
  for (const { counts } of streams) {
    all.delivered += counts.delivered;
    all.lost += counts.lost;
    all.doubled += counts.doubled;
    all.reordered += counts.reordered;
    all.foreign += counts.foreign;
  }
  return all;
}

/** @param {readonly Stream[]} streams */
function failuresOf(streams) {
  const failures = new Failures();
  for (const { failure } of streams) if (failure !== null) failures.add(failure);
  return failures;
}
