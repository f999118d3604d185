import type { Cache } from '#shared/storage/cache.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Seconds to wait before the next poll: always a whole number, since clients parse it as one. */
export const BACKOFF_HEADER = 'x-polling-backoff';

/** After a poll that brought nothing. */
export const EMPTY_BACKOFF_SECONDS = 1;
const MOST_BACKOFF_SECONDS = 30;
/** Who asks again within this time asks too often. */
const TOO_SOON_MS = 1_000;

export interface PollingBackoff {
  /** A client asked without waiting and got nothing. @returns the seconds it should wait: doubled each time that it comes too soon */
  afterNothing(sessionId: string, client: string): Promise<number>;
  /** It got something: the next time counts anew. */
  afterEvents(sessionId: string, client: string): Promise<void>;
}

/** Kept in the cache, so that a client can't escape by changing gateways. Without the cache everybody is told the least. */
export function pollingBackoff({ cache, log }: { cache: Cache; log: Log }): PollingBackoff {
  const keyOf = (sessionId: string, client: string) => `poll:${sessionId}:${client}`;
  return {
    async afterNothing(sessionId, client) {
      try {
        const key = keyOf(sessionId, client);
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
    },
    async afterEvents(sessionId, client) {
      await cache.delete(keyOf(sessionId, client)).catch((error: unknown) => log.warn({ err: error }, 'the cache can not be reached'));
    },
  };
}
