/** A receiver may delay a retry, but not for hours. */
const MAX_WAIT_MS = 60_000;

const SECONDS = /^-?\d{1,12}$/;
/** All three date forms of HTTP begin with a weekday. Without this test `Date.parse` would read `1.5` as a date in 2001. */
const DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? /i;

/**
 * The wait that a `Retry-After` header asks for, clamped to 0–60,000 ms; a past date is 0.
 *
 * @returns null when the header is absent or invalid
 */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  if (SECONDS.test(text)) return withinBounds(Number(text) * 1_000);
  if (!DATE.test(text)) return null;
  // The oldest form has no zone and means GMT.
  const atMs = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(atMs) ? null : withinBounds(atMs - nowMs);
}

function withinBounds(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), MAX_WAIT_MS);
}
