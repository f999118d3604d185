/** A time budget that starts at its first call. @returns milliseconds left, at least 0 */
export function countdown(limitMs: number, nowMs: () => number = () => performance.now()): () => number {
  let untilMs: number | null = null;
  return () => {
    untilMs ??= nowMs() + limitMs;
    return Math.max(0, untilMs - nowMs());
  };
}
