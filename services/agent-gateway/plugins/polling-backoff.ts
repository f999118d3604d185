import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Seconds until the next poll: an integer, as clients parse it. */
export const BACKOFF_HEADER = 'x-polling-backoff';

export const EMPTY_BACKOFF_SECONDS = 1;
const MAX_BACKOFF_SECONDS = 30;
const TOO_SOON_MS = 1_000;
/** About a hundred bytes each, and far more than a gateway serves in `TOO_SOON_MS`. */
const MAX_RETAINED_READS = 10_000;

/** The pause that a polling client is asked for, by session and client address. */
export interface PollingBackoff {
  /** After an empty poll without a wait. @returns the seconds to wait, doubled with each poll that comes too soon */
  afterEmpty(sessionId: string, client: string): Promise<number>;
  /**
   * After a poll with events: 0 and a reset, unless the same offset was read less than a second ago.
   * @param read `waited`: whether it would have waited for events
   */
  afterEvents(sessionId: string, client: string, read: { minOffset: number; waited: boolean }): Promise<number>;
}

/** Back-off of polling clients, in the shared cache so that changing gateways does not reset it. Without the cache it is the minimum. */
export function pollingBackoff({ cache, clock, log }: { cache: Cache; clock: Clock; log: Log }): PollingBackoff {
  const keyOf = (sessionId: string, client: string) => `poll:${sessionId}:${client}`;
  const reads = new RecentReads(clock);

  const raise = async (key: string): Promise<number> => {
    try {
      const last = Number(await cache.get(key));
      // The entry may be missing or foreign.
      const seconds = Number.isInteger(last) && last > 0 ? Math.min(last * 2, MAX_BACKOFF_SECONDS) : EMPTY_BACKOFF_SECONDS;
      // It expires when a further poll would not be too soon.
      await cache.set(key, String(seconds), TOO_SOON_MS);
      return seconds;
    } catch (error) {
      log.warn({ err: error }, 'the cache is unreachable');
      return EMPTY_BACKOFF_SECONDS;
    }
  };
  return {
    afterEmpty: (sessionId, client) => raise(keyOf(sessionId, client)),
    async afterEvents(sessionId, client, { minOffset, waited }) {
      const key = keyOf(sessionId, client);
      if (reads.isRepeat(key, minOffset)) return raise(key);
      // A poll that waits has none, except one from a poll without a wait just before, which expires.
      if (!waited) await cache.delete(key).catch((error: unknown) => log.warn({ err: error }, 'the cache is unreachable'));
      return 0;
    },
  };
}

/** The last offset each client has read. In memory: most reads are no repeats, and in the cache each would cost two requests. */
class RecentReads {
  readonly #clock: Clock;
  readonly #reads = new LRUCache<string, { minOffset: number; atMs: number }>({ max: MAX_RETAINED_READS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isRepeat(key: string, minOffset: number): boolean {
    const atMs = this.#clock.nowMs();
    const last = this.#reads.get(key);
    this.#reads.set(key, { minOffset, atMs });
    return last !== undefined && last.minOffset === minOffset && atMs - last.atMs < TOO_SOON_MS;
  }
}
