/**
 * Counters, slots and small values that may be lost at any moment: rate limits, shared health, stickiness. No money, no truth.
 * Keys are any text up to 512 characters; every entry has a time to live, so nothing needs sweeping by hand.
 */
export interface Cache {
  /** The value, or null when it was never set, has expired or was lost. */
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  delete(key: string): Promise<void>;
  /** Adds to a counter and returns the sum. The first addition starts its time to live; later ones do not prolong it. */
  increment(key: string, by: number, ttlMs: number): Promise<number>;
  /**
   * Takes, or prolongs, one of `limit` slots for `holder`. False when all are held by others. A slot that is not prolonged
   * within `ttlMs` is free again, so a dead holder blocks nobody for long.
   */
  takeSlot(key: string, holder: string, limit: number, ttlMs: number): Promise<boolean>;
  releaseSlot(key: string, holder: string): Promise<void>;
  close(): Promise<void>;
}
