/**
 * When a frame is stored for replay. `soon` costs a broker a fraction: within `RETAINED_WITHIN_MS`, later while the publisher is stalled or its broker away,
 * never when the publisher dies first. `no more`: neither this frame nor the subject's pending ones need be stored.
 */
type Retention = 'at once' | 'soon' | 'no more';
export const RETAINED_WITHIN_MS = 1_000;

/** What a driver does with a frame. */
interface Treatment {
  retention: Retention;
  /** `at once`: a reader waits for it to begin its response. `alone`: at once if no other work is in flight here. Others leave at the end of the tick. */
  leaves: 'at once' | 'alone' | 'at tick end';
}

const KEPT: Treatment = { retention: 'at once', leaves: 'at tick end' };
const KEPT_SOON: Treatment = { retention: 'soon', leaves: 'at tick end' };
const DROPPED: Treatment = { retention: 'no more', leaves: 'at tick end' };

/**
 * By the letter of a frame (frame.ts). A redelivery must know whether content was published, and a resuming reader needs the terminal frame: those of a client's
 * call are stored at once. Of a logged call (capital letters) the effect's row decides whether it is executed again, and its text ends up in the session's log.
 */
const treatments: readonly (readonly [letters: string, Treatment])[] = [
  ['tmTMO', KEPT_SOON],
  ['DE', DROPPED],
  ['s', { retention: 'at once', leaves: 'at once' }],
  ['S', { retention: 'soon', leaves: 'at once' }],
  ['b', { retention: 'at once', leaves: 'alone' }],
];

const BY_LETTER = new Array<Treatment>(256).fill(KEPT);
for (const [letters, treatment] of treatments) for (const letter of letters) BY_LETTER[letter.charCodeAt(0)] = treatment;

export function treatmentOf(frame: Uint8Array): Treatment {
  return BY_LETTER[frame[0] as number] ?? KEPT;
}
