/** Milliseconds of the machine's monotonic clock: the same in every process, so that timestamps of two can be compared. It has no date. */
export function monotonicMs() {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
