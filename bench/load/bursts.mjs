import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { lastingConnection } from '../http/request.mjs';
import { lengthMs } from '../shape.mjs';
import { Failures } from './failures.mjs';
import { holdStreams } from './held-streams.mjs';
import { nextId } from './next-id.mjs';
import { oneStream } from './one-stream.mjs';

/**
 * @typedef {object} BurstLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {(id: number) => Buffer} requestOf its bytes, with that id in it
 * @property {import('../shape.mjs').Shape} shape of all streams
 * @property {number} held streams that are open beside the bursts, so that the core is busy
 * @property {number} burst streams of one burst
 * @property {number} withinMs in which they begin
 * @property {number} bursts one after the other
 * @property {number} warmMs before the first, which is repeated once uncounted
 */

/** Beyond the length of a stream: the lateness that is allowed at its end. */
const END_TIMEOUT_MS = 60_000;
/** After a burst's last stream, so that the next one meets the held streams alone. */
const APART_MS = 500;

/**
 * Streams that begin together while others are open.
 *
 * @param {BurstLoad} load
 * @returns {Promise<{ count: number, p50Ms: number | null, p99Ms: number | null, failures: Failures }>} from a request to its first token, as is
 */
export async function bursts({ held, burst, withinMs, bursts: count, warmMs, ...streams }) {
  const slots = holdStreams({ ...streams, streams: held });
  const failures = new Failures();
  /** @type {number[]} */
  const firstTokens = [];
  // Opened beforehand: what is measured is the streams.
  const connections = Array.from({ length: burst }, () => lastingConnection(streams.address));
  const oneBurst = async (/** @type {boolean} */ isCounted) => {
    await Promise.all(connections.map(({ get }) => get()));
    await Promise.all(
      connections.map(async (lasting, index) => {
        await delay((index / burst) * withinMs);
        const id = nextId();
        const request = streams.requestOf(id);
        const { firstTokenMs, failure } = await oneStream(await lasting.get(), { request, id, tokens: streams.shape.tokens, onTokens: () => {} });
        if (failure !== null) failures.add(failure);
        else if (firstTokenMs !== null && isCounted) firstTokens.push(firstTokenMs);
      }),
    );
    await delay(APART_MS);
  };
  await delay(warmMs);
  for (let done = -1; done < count; done += 1) await oneBurst(done >= 0).catch((error) => failures.add(error));
  slots.beginNoMore();
  for (const { leave } of connections) leave();
  for (const { failure } of await slots.ended(lengthMs(streams.shape) + END_TIMEOUT_MS)) if (failure !== null) failures.add(failure);
  return { count: firstTokens.length, p50Ms: quantile(firstTokens, 0.5), p99Ms: quantile(firstTokens, 0.99), failures };
}
