import { setTimeout as pause } from 'node:timers/promises';
import { isTransientError } from './transient-error.ts';

/** Between two tries: a database that restarts is back within seconds. */
const RETRY_MS = 500;

/**
 * Waits for a database that is away for a while, instead of failing: what waits here still holds its lease, and does not use up its tries.
 * @param signal bounds the waiting
 * @throws what the work threw when it will not pass, or when the waiting is over
 */
export async function retryWhileTransient<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isTransientError(error)) throw error;
      await pause(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}
