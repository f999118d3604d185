import type { Clock } from '#shared/clock.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Seconds to wait before the next poll: always a whole number, since clients parse it as one. */
export const BACKOFF_HEADER = 'x-polling-backoff';

/** After a poll that brought nothing. */
export const EMPTY_BACKOFF_SECONDS = 1;
const MOST_BACKOFF_SECONDS = 30;
/** Who asks again within this time asks too often. */
const TOO_SOON_MS = 1_000;
/** Reads that are remembered, some hundred bytes each: those of one second at far more reads than a gateway answers in it. */
const MAX_RETAINED_READS = 10_000;

export interface PollingBackoff {
  /** A client asked without waiting and got nothing. @returns the seconds it should wait: doubled each time that it comes too soon */
  afterNothing(sessionId: string, client: string): Promise<number>;
  /**
   * It got something: 0, and the next time counts anew, unless it has read from the same offset less than a second ago.
   * @param read `waited`: whether it would have waited for events
   */
  afterEvents(sessionId: string, client: string, read: { minOffset: number; waited: boolean }): Promise<number>;
}

/** Kept in the cache, so that a client can't escape by changing gateways. Without the cache everybody is told the least. */
export function pollingBackoff({ cache, clock, log }: { cache: Cache; clock: Clock; log: Log }): PollingBackoff {
  const keyOf = (sessionId: string, client: string) => `poll:${sessionId}:${client}`;
  const reads = new RecentReads(clock);

  const rise = async (key: string): Promise<number> => {
    try {
      const last = Number(await cache.get(key));
      // Of another hand, or none at all: the header is a whole number all the same.
      const seconds = Number.isInteger(last) && last > 0 ? Math.min(last * 2, MOST_BACKOFF_SECONDS) : EMPTY_BACKOFF_SECONDS;
      // The entry lives for as long as a further call would be too soon; that it is there is all that needs to be known.
      await cache.set(key, String(seconds), TOO_SOON_MS);
      return seconds;
    } catch (error) {
      log.warn({ err: error }, 'the cache can not be reached');
      return EMPTY_BACKOFF_SECONDS;
    }
  };
  return {
    afterNothing: (sessionId, client) => rise(keyOf(sessionId, client)),
    async afterEvents(sessionId, client, { minOffset, waited }) {
      const key = keyOf(sessionId, client);
      if (reads.isRepeat(key, minOffset)) return rise(key);
      // One that waits has no entry, unless it had asked without waiting just before; that one expires by itself.
      if (!waited) await cache.delete(key).catch((error: unknown) => log.warn({ err: error }, 'the cache can not be reached'));
      return 0;
    },
  };
}

/**
 * From which offset each client has read last. In the memory of this gateway: most reads are no repeats, and would each cost the cache two
 * requests.
 */
class RecentReads {
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #reads = new Map<string, { minOffset: number; atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the same was read less than a second ago. Remembers this read. */
  isRepeat(key: string, minOffset: number): boolean {
    const atMs = this.#clock.nowMs();
    const last = this.#reads.get(key);
    this.#reads.delete(key);
    this.#reads.set(key, { minOffset, atMs });
    for (const oldest of this.#reads.keys()) {
      if (this.#reads.size <= MAX_RETAINED_READS) break;
      this.#reads.delete(oldest);
    }
    return last !== undefined && last.minOffset === minOffset && atMs - last.atMs < TOO_SOON_MS;
  }
}
