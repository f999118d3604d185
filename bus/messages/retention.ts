/**
 * When a frame is stored for replay. `soon` costs a broker a fraction: within `RETAINED_WITHIN_MS`, later while the publisher is stalled or its broker away,
 * never when the publisher dies first. `no more`: neither this frame nor the subject's pending ones need be stored.
 */
export type Retention = 'at once' | 'soon' | 'no more';
export const RETAINED_WITHIN_MS = 1_000;

const RETENTION = new Array<Retention>(256).fill('at once');
// Of a logged call: its effect's row decides whether it is executed again, and its text ends up in the session's log.
for (const letter of 'tmTMSO') RETENTION[letter.charCodeAt(0)] = 'soon';
for (const letter of 'DE') RETENTION[letter.charCodeAt(0)] = 'no more';

const STATES_TEMPLATE: ReadonlySet<number | undefined> = new Set([...'sS'].map((letter) => letter.charCodeAt(0)));
const BODY = 'b'.charCodeAt(0);

/**
 * By the frame's kind (frame.ts). A redelivery must know whether content was published, and a resuming reader needs the terminal frame: those of a client's
 * call are stored at once.
 */
export function retentionOf(frame: Uint8Array): Retention {
  return RETENTION[frame[0] as number] ?? 'at once';
}

/** Whether a reader waits for this frame to begin its response: it leaves at once, not at the end of the tick. */
export function beginsAnswer(frame: Uint8Array): boolean {
  return STATES_TEMPLATE.has(frame[0]);
}

export function isBody(frame: Uint8Array): boolean {
  return frame[0] === BODY;
}
