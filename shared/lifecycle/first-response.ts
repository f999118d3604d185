import { setTimeout as delay } from 'node:timers/promises';

/** A supervisor starts processes and stores together. */
const TIMEOUT_MS = 5_000;
const ASK_AGAIN_MS = 100;

/**
 * Waits for a store's first reply, where its driver opens without one. A store that never replied is probably a wrong address and must fail the
 * start.
 * @throws the store's last error when the time is over
 */
export async function firstResponse(ask: () => Promise<unknown>, timeoutMs: number = TIMEOUT_MS): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() >= untilMs) throw error;
      await delay(ASK_AGAIN_MS);
    }
  }
}
