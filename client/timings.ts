/** Milliseconds. The defaults fit the server's: a heartbeat every 15 s, long-polls of 20 s. */
export interface Timings {
  /** Of a request, its answer read. */
  requestMs: number;
  /** From the request for a stream to its first byte, which the server sends at once. */
  firstByteMs: number;
  /** Without any byte of an open stream: longer than two heartbeats. */
  silenceMs: number;
  /** The pause before the first repetition, doubled with each, and its bound. Half of it is random. */
  retryMs: number;
  maxRetryMs: number;
  /** How long polls are used before a stream is tried again, doubled with each try that fails, and its bound. */
  streamAgainMs: number;
  maxStreamAgainMs: number;
}

export const defaultTimings: Timings = {
  requestMs: 30_000,
  firstByteMs: 10_000,
  silenceMs: 45_000,
  retryMs: 250,
  maxRetryMs: 10_000,
  streamAgainMs: 60_000,
  maxStreamAgainMs: 600_000,
};

/** The pause before a repetition. @param failures so far, from 1 */
export function retryDelay(failures: number, { retryMs, maxRetryMs }: Timings, retryAfterMs: number | null): number {
  const bound = Math.min(retryMs * 2 ** Math.min(failures - 1, 16), maxRetryMs);
  return Math.max(bound / 2 + (Math.random() * bound) / 2, retryAfterMs ?? 0);
}
