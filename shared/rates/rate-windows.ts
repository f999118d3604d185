/** Limits per minute count in windows of the clock's minutes. */
export const RATE_WINDOW_MS = 60_000;
/** A window's counter outlasts it, so that clocks of processes may differ. */
export const RATE_COUNTER_MS = 2 * RATE_WINDOW_MS;

export function rateWindowOf(atMs: number): number {
  return Math.floor(atMs / RATE_WINDOW_MS);
}

/** The cache's key of a counter: what calls of an API key, made in the window of `atMs`, count. */
export function rateCounterOf(counts: 'requests' | 'tokens', keyId: string, atMs: number): string {
  return `rate:${counts}:${keyId}:${rateWindowOf(atMs)}`;
}
