import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { Connection } from '../http/connection.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { Failures } from './failures.mjs';
import { nextId } from './next-id.mjs';
import { noticedAborts } from './noticed-aborts.mjs';
import { oneStream } from './one-stream.mjs';

/** @typedef {import('./leaving-clients.mjs').LeavingLoad} LeavingLoad */

const TOKENS_READ = 3;
const OPEN_TIMEOUT_MS = 60_000;
const LOOK_AGAIN_MS = 20;

/**
 * Opens streams, and closes a group of their connections at the same moment while the others read on; then the next group, until none is left.
 *
 * @param {LeavingLoad & { together: number }} load `together`: clients of a group
 * @returns {Promise<import('./leaving-clients.mjs').LeavingFigures>} how many aborts the upstream noticed, and how long after the disconnects
 */
export async function leavingAtOnce({ address, requestOf, tokens, clients, together, upstream }) {
  const failures = new Failures();
  await upstream.counts(); // discards earlier counts
  const streams = await Promise.all(
    Array.from({ length: clients }, async () => {
      const id = nextId();
      const stream = { id, connection: await Connection.open(address), read: 0, hasLeft: false };
      const onTokens = (/** @type {number} */ count) => {
        stream.read += count;
      };
      const ended = oneStream(stream.connection, { request: requestOf(id), id, tokens, onTokens });
      void ended.then(({ failure }) => stream.hasLeft || failures.add(failure ?? 'the stream ended before its client left'));
      return stream;
    }),
  );
  for (const untilMs = monotonicMs() + OPEN_TIMEOUT_MS; streams.some(({ read }) => read < TOKENS_READ) && monotonicMs() < untilMs; ) await delay(LOOK_AGAIN_MS);
  /** @type {number[]} */
  const tookMs = [];
  for (let from = 0; from < clients; from += together) {
    /** @type {Map<number, number>} */
    const leftAtMs = new Map();
    for (const stream of streams.slice(from, from + together)) {
      stream.hasLeft = true;
      leftAtMs.set(stream.id, monotonicMs());
      stream.connection.leave();
    }
    tookMs.push(...(await noticedAborts(upstream, leftAtMs)));
  }
  return { clients, seen: tookMs.length, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99), failures };
}
