import { randomInt } from 'node:crypto';

/** Above all delivery numbers: attempts below it are those of dispatches, and of workers of the release before. */
const TAGS = 1_000;

/** Of the next delivery to this process. */
let nextTag = randomInt(TAGS);

/**
 * The attempt of a queued item's delivery, in ids of frames: the number of the delivery, then a tag. After an election of the broker an item may be delivered
 * twice with the same delivery number, to two workers or to one, since the new leader does not know the first delivery and counts anew. Their frames must not be
 * taken for one answer.
 */
export function attemptOf(delivery: number, tag = newTag()): number {
  return delivery * TAGS + (tag % TAGS);
}

/** Counted from a random number: a process has no tag twice within its next 1,000 deliveries, and seldom that of another process. */
function newTag(): number {
  nextTag += 1;
  return nextTag;
}

/** The delivery of an attempt. */
export function deliveryOf(attempt: number): number {
  return attempt < TAGS ? attempt : Math.floor(attempt / TAGS);
}
