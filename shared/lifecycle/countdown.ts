/**
 * Counts down from the moment at which it is asked first.
 *
 * @returns what is left of it, in milliseconds; 0 when it is over
 */
export function countdown(limitMs: number, nowMs: () => number = () => performance.now()): () => number {
  let untilMs: number | null = null;
  return () => {
    untilMs ??= nowMs() + limitMs;
    return Math.max(0, untilMs - nowMs());
  };
}
