import { setTimeout as delay } from 'node:timers/promises';

const LOOK_AGAIN_MS = 20;
const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * Waits until a condition holds and returns its value. A condition that throws does not hold yet; its last error becomes
 * the cause at the timeout.
 *
 * @param condition holds once it returns anything but false, null and undefined
 * @throws when it does not hold within `timeoutMs`
 */
export async function eventually<Held>(
  condition: () => Held | Promise<Held>,
  { timeoutMs = DEFAULT_TIMEOUT_MS, lookAgainMs = LOOK_AGAIN_MS }: { timeoutMs?: number; lookAgainMs?: number } = {},
): Promise<Exclude<Held, false | null | undefined>> {
  const untilMs = Date.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const held = await condition();
      if (held !== false && held !== null && held !== undefined) return held as Exclude<Held, false | null | undefined>;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (Date.now() >= untilMs) throw new Error(`did not come to hold within ${timeoutMs} ms: ${condition}`, { cause });
    await delay(lookAgainMs);
  }
}
