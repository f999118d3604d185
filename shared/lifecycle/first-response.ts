import { setTimeout as delay } from 'node:timers/promises';

/** A supervisor starts processes and stores together. */
const TIMEOUT_MS = 5_000;
const ASK_AGAIN_MS = 100;

/**
 * Waits for the first answer of a store whose driver opens without one. Later the store may be away; one that has never answered is rather
 * a wrong address, which somebody should hear of now.
 * @throws its last error when none has come in time
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
