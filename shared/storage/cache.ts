/** Every driver throws a RangeError beyond these. */
export const cacheLimits = { keyCharacters: 512, valueCharacters: 64 * 1_024, keysAtOnce: 256 } as const;

/**
 * Counters, slots and small values that may be lost at any time: rate limits, shared health, stickiness.
 * A key has one kind: value, counter or slots. `get` of a counter returns its decimal text; every other mixture throws a TypeError. Only `set`
 * replaces an entry of another kind. A time to live under 1 ms counts as 1 ms.
 * While the store is unreachable every call rejects within seconds with `service.unreachable`, or with `service.not_ready` when too many are in
 * flight. After `close`: `storage.closed`.
 */
export interface Cache {
  /** Null when never set, expired or lost. */
  get(key: string): Promise<string | null>;
  /** As `get`, of several keys in one request; null for slots, too. */
  getMany(keys: readonly string[]): Promise<(string | null)[]>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Of any kind; all slots under the key become free. */
  delete(key: string): Promise<void>;
  /** Adds an integer (else RangeError) to a counter and returns the sum. Only the first addition sets the time to live. */
  increment(key: string, by: number, ttlMs: number): Promise<number>;
  /**
   * Takes or extends one of `limit` slots for `owner`; false when all are taken. A slot not extended within `ttlMs` is freed: its process may have
   * crashed.
   */
  acquireSlot(key: string, owner: string, limit: number, ttlMs: number): Promise<boolean>;
  /** As `acquireSlot` for each owner, in this order, in one command. An owner that gets no slot is not reported. */
  extendSlots(key: string, owners: readonly string[], limit: number, ttlMs: number): Promise<void>;
  /** A no-op without a slot. */
  releaseSlot(key: string, owner: string): Promise<void>;
  close(): Promise<void>;
}
