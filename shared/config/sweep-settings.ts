const DAY_MS = 24 * 60 * 60 * 1_000;

/** Of the sweep of the store. */
export function sweepOf({ STORE_GC_DELAY_SECONDS: delay, RUN_RETENTION_DAYS: retention }: { STORE_GC_DELAY_SECONDS: number; RUN_RETENTION_DAYS: number }) {
  return { delayMs: delay * 1_000, retentionMs: retention * DAY_MS };
}
