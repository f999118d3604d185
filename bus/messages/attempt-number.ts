import { randomInt } from 'node:crypto';

/** Above all delivery numbers: attempts below it are those of dispatches, and of workers of the release before. */
const WORKERS = 1_000;

/** Of this process. */
const ownNumber = randomInt(WORKERS);

/**
 * The attempt of a queued item's delivery, in ids of frames: the number of the delivery, then one of the worker. After an election of the broker two workers may
 * have an item with the same delivery number, since the new leader does not know the delivery and counts it anew. Their frames must not be taken for one answer.
 */
export function attemptOf(delivery: number, worker = ownNumber): number {
  return delivery * WORKERS + (worker % WORKERS);
}

/** The delivery of an attempt. */
export function deliveryOf(attempt: number): number {
  return attempt < WORKERS ? attempt : Math.floor(attempt / WORKERS);
}
