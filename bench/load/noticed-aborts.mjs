import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../monotonic.mjs';

/** The bar is 50 ms; what the upstream has not noticed by then counts as a failure. */
const NOTICE_TIMEOUT_MS = 5_000;
const LOOK_AGAIN_MS = 50;

/**
 * How long it took until the upstream saw its own connections close.
 *
 * @param {import('../upstream/start-upstream.mjs').Upstream} upstream
 * @param {ReadonlyMap<number, number>} leftAtMs when the client left, by the stream's id
 * @returns {Promise<number[]>} milliseconds, of those that it saw
 */
export async function noticedAborts(upstream, leftAtMs) {
  /** @type {Map<number, number>} */
  const noticedAtMs = new Map();
  for (const untilMs = monotonicMs() + NOTICE_TIMEOUT_MS; noticedAtMs.size < leftAtMs.size && monotonicMs() < untilMs; ) {
    await delay(LOOK_AGAIN_MS);
    for (const { id, atMs } of (await upstream.counts()).aborts) if (leftAtMs.has(id)) noticedAtMs.set(id, atMs);
  }
  return [...noticedAtMs].map(([id, atMs]) => atMs - (leftAtMs.get(id) ?? atMs));
}
