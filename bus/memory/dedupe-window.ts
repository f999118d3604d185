import type { Clock } from '#shared/clock.ts';

/** The same as the broker's. */
export const DEDUPE_WINDOW_MS = 120_000;
/** 4,000 messages a second. Past it the oldest ids are forgotten; readers are idempotent anyway. */
const MAX_IDS = 500_000;

/** Message ids of the last 120 seconds. A repeat does not extend an id's age. */
export class DedupeWindow<Value> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { value: Value; atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Null for an unknown or expired id. */
  find(messageId: string): Value | null {
    this.#deleteOld();
    const entry = this.#entries.get(messageId);
    // The clock may have been set back; then the oldest entries are not the first.
    return entry !== undefined && entry.atMs > this.#clock.nowMs() - DEDUPE_WINDOW_MS ? entry.value : null;
  }

  add(messageId: string, value: Value, atMs: number = this.#clock.nowMs()): void {
    // Deleted first: a Map keeps the order of known keys.
    this.#entries.delete(messageId);
    this.#entries.set(messageId, { value, atMs });
    this.#deleteOld();
  }

  delete(messageId: string): void {
    this.#entries.delete(messageId);
  }

  #deleteOld(): void {
    const oldest = this.#clock.nowMs() - DEDUPE_WINDOW_MS;
    for (const [messageId, { atMs }] of this.#entries) {
      if (atMs > oldest && this.#entries.size <= MAX_IDS) return;
      this.#entries.delete(messageId);
    }
  }
}
