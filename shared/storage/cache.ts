/** What every driver refuses with a RangeError, so that no caller can fill a cache with little more than one entry. */
export const cacheLimits = { keyCharacters: 512, valueCharacters: 64 * 1_024 } as const;

/**
 * Counters, slots and small values that may be lost at any moment: rate limits, shared health, stickiness. No money, no truth.
 * Keys are any text up to 512 characters; every entry has a time to live, so nothing needs sweeping by hand. A time to live
 * under 1 ms counts as 1 ms. A key stands for one kind of entry, a value, a counter or slots, for as long as it lives; reading
 * a counter as a value gives its decimal text, and any other mixture is refused with a TypeError. Only `set` takes a key over from
 * another kind.
 * While the store is away every call is refused within seconds, with `service.unreachable`, or `service.not_ready` when too many wait for
 * it: a caller does without. After `close` every call is refused with `storage.closed`.
 */
export interface Cache {
  /** The value, or null when it was never set, has expired or was lost. Up to 64 KiB of characters. */
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Forgets whatever stands under the key; slots become free for everybody. */
  delete(key: string): Promise<void>;
  /** Adds a whole number (else: RangeError) to a counter and returns the sum. The first addition starts its time to live; later ones do not prolong it. */
  increment(key: string, by: number, ttlMs: number): Promise<number>;
  /**
   * Takes, or prolongs, one of `limit` slots for `holder`. False when all are held by others. A slot that is not prolonged
   * within `ttlMs` is free again, so a dead holder blocks nobody for long.
   */
  acquireSlot(key: string, holder: string, limit: number, ttlMs: number): Promise<boolean>;
  /** Frees the holder's slot; nothing happens when it holds none. */
  releaseSlot(key: string, holder: string): Promise<void>;
  close(): Promise<void>;
}
