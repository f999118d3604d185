import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../figures.mjs';
import { Connection } from '../http/connection.mjs';
import { monotonicMs } from '../monotonic.mjs';
import { Failures } from './failures.mjs';
import { nextId } from './next-id.mjs';
import { noticedAborts } from './noticed-aborts.mjs';
import { oneStream } from './one-stream.mjs';

/**
 * @typedef {object} LeavingLoad
 * @property {import('../http/connection.mjs').Address} address
 * @property {(id: number) => Buffer} requestOf
 * @property {number} tokens that the upstream would send
 * @property {number} clients
 * @property {import('../upstream/start-upstream.mjs').Upstream} upstream
 */

/** @typedef {{ clients: number, seen: number, p50Ms: number | null, p99Ms: number | null, failures: Failures }} LeavingFigures */

/** Pause between two clients, so that each is measured by itself. */
const APART_MS = 10;
const TOKENS_READ = 3;

/**
 * Opens streams and closes the connection of each in its middle. An upstream that is aborted stops costing money.
 *
 * @param {LeavingLoad} load
 * @returns {Promise<LeavingFigures>} how many aborts the upstream noticed, and how long after the disconnects
 */
export async function leavingClients({ address, requestOf, tokens, clients, upstream }) {
  const failures = new Failures();
  /** By the stream's id. @type {Map<number, number>} */
  const leftAtMs = new Map();
  await upstream.counts(); // discards earlier counts
  await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      await delay(index * APART_MS);
      const id = nextId();
      try {
        await readAndLeave(await Connection.open(address), { id, request: requestOf(id), tokens, onLeave: (atMs) => void leftAtMs.set(id, atMs) });
      } catch (error) {
        failures.add(error);
      }
    }),
  );
  const tookMs = await noticedAborts(upstream, leftAtMs);
  return { clients, seen: tookMs.length, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99), failures };
}

/**
 * @param {Connection} connection
 * @param {{ id: number, request: Buffer, tokens: number, onLeave: (atMs: number) => void }} what
 * @throws when the stream ends before the client leaves
 */
async function readAndLeave(connection, { id, request, tokens, onLeave }) {
  let read = 0;
  let hasLeft = false;
  const onTokens = (/** @type {number} */ count) => {
    read += count;
    if (read < TOKENS_READ || hasLeft) return;
    hasLeft = true;
    onLeave(monotonicMs());
    connection.leave();
  };
  const { failure } = await oneStream(connection, { request, id, tokens, onTokens });
  if (!hasLeft) throw new Error(failure ?? 'the stream ended before its client left');
}
