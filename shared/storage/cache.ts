/** Beyond these every driver throws a RangeError. */
export const cacheLimits = { keyCharacters: 512, valueCharacters: 64 * 1_024 } as const;

/**
 * Counters, slots and small values that may be lost at any time: rate limits, shared health, stickiness. Never the only copy of anything.
 * A time to live under 1 ms counts as 1 ms. A key has one kind: value, counter or slots. `get` of a counter returns its decimal text; every other
 * mixture throws a TypeError. Only `set` replaces an entry of another kind.
 * While the store is unreachable every call rejects within seconds with `service.unreachable`, or with `service.not_ready` when too many are in
 * flight; callers go on without the cache. After `close` every call rejects with `storage.closed`.
 */
export interface Cache {
  /** Null when never set, expired or lost. */
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Deletes an entry of any kind; all slots under the key become free. */
  delete(key: string): Promise<void>;
  /** Adds an integer (else RangeError) to a counter and returns the sum. Only the first addition sets the time to live. */
  increment(key: string, by: number, ttlMs: number): Promise<number>;
  /**
   * Takes or extends one of `limit` slots for `holder`. False when all are taken. A slot that is not extended within `ttlMs` is freed, so that a
   * crashed process does not block it.
   */
  acquireSlot(key: string, holder: string, limit: number, ttlMs: number): Promise<boolean>;
  /** A no-op when the holder has no slot. */
  releaseSlot(key: string, holder: string): Promise<void>;
  close(): Promise<void>;
}
