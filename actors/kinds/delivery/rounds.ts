/** A later round is skipped, and its timer opens another. Longer than the queueing delay under load. */
export const ROUND_MS = 120_000;
/** For a round begun just before its deadline. */
export const ROUND_GRACE_MS = 30_000;
/** Doubled after each failure. */
const BACK_OFF_FIRST_MS = 1_000;
const BACK_OFF_LONGEST_MS = 60_000;
/** Fraction of the pause, up or down: spreads simultaneous failures. */
const JITTER = 0.2;

/** Suffix of the timers that open another round. Stored. */
export const RETRY_SUFFIX = '-due';

/** Key of the timer for a round without a report. Stored. */
export function overdueKeyOf(roundId: string): string {
  return `${roundId}-overdue`;
}

/** Milliseconds until the next try. `attempts`: failed so far; `retryAfterMs`: as the receiver asks, null when it does not; `chance`: between 0 and 1. */
export function pauseMs({ attempts, retryAfterMs, chance }: { attempts: number; retryAfterMs: number | null; chance: number }): number {
  const backOff = Math.min(BACK_OFF_FIRST_MS * 2 ** Math.max(0, attempts - 1), BACK_OFF_LONGEST_MS);
  const spread = backOff * (1 + JITTER * (2 * chance - 1));
  return Math.round(Math.max(spread, retryAfterMs ?? 0));
}
