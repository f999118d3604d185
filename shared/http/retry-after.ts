/** A receiver may ask us to wait, but not to keep a delivery for hours. */
const MAX_WAIT_MS = 60_000;

const SECONDS = /^-?\d{1,12}$/;
/** All three ways to write a date in HTTP begin with a day of the week. `Date.parse` would also read `1.5` as one, in 2001. */
const DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i;

/**
 * How long a `Retry-After` header asks us to wait, from 0 to 60,000 ms; what is negative or past is 0.
 *
 * @returns null when there is no such header, or nobody can read it
 */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (SECONDS.test(text)) return withinBounds(Number(text) * 1_000);
  if (!DATE.test(text)) return null;
  // The oldest of the three names no zone and means the same one.
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(atMs) ? null : withinBounds(atMs - nowMs);
}

function withinBounds(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), MAX_WAIT_MS);
}
