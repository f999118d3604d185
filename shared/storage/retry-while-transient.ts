import { setTimeout as pause } from 'node:timers/promises';
import { isTransientError } from './transient-error.ts';

/** A database that restarts is back within seconds. */
const RETRY_MS = 500;

/**
 * Retries while the error is transient, so that a database restart does not use up the tries of an item under lease.
 * @param signal ends the retries
 * @throws the last error when it is not transient or the signal has aborted
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
