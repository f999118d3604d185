import { eventually } from '../helpers/eventually.ts';
import { isQuiet, type SentMessages, unfinished } from '../helpers/session-logs.ts';
import type { Environment } from './environment.ts';

/** What is in flight when the load ends may wait for an owner, a redelivery and a callback's back-off. */
const QUIET_MS = 60_000;
/**
 * The circuit breaker of a receiver that has not answered five posts in a row, as one that drops connections or shares a busy machine, lets one post through
 * at a time: the next one after 30 s at the latest, 4 s of jitter and the 10 s that it may take. So at least one comes in each `QUIET_MS`; after ten minutes
 * no post waits any longer.
 */
const MOST_WINDOWS = 10;

/** Waits until nothing is in flight any more: for deliveries alone as long as posts go on. @throws with what is still in flight */
export async function untilQuiet({ database, receiver }: Environment, sessions: ReadonlyMap<string, SentMessages>): Promise<void> {
  for (let window = 1; ; window += 1) {
    const before = receiver.posts;
    try {
      await eventually(() => isQuiet(database, sessions), { timeoutMs: QUIET_MS });
      return;
    } catch (error) {
      const { runs = 0, messages = 0, others = 0 } = await unfinished(database, sessions);
      const isDelivering = runs + messages + others === 0 && receiver.posts > before;
      if (!isDelivering || window === MOST_WINDOWS) throw error;
    }
  }
}
