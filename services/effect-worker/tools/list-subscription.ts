import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';

const ACKNOWLEDGED_WITHIN_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

interface ListeningOptions {
  client: Client;
  /** Aborted when our limits have ended the stream: no other is opened. */
  cut: AbortSignal;
  onListChanged(): void;
}

/**
 * Keeps a `subscriptions/listen` stream open, on which a server of 2026-07-28 announces changes of its tools. What changed between two
 * streams is not announced, so each further one counts as a change.
 */
export function standListening({ client, cut, onListChanged }: ListeningOptions): { stop(): void } {
  const stopped = new AbortController();
  const signal = AbortSignal.any([stopped.signal, cut]);
  listen({ client, onListChanged }, signal).catch(() => {});
  return { stop: () => stopped.abort() };
}

async function listen({ client, onListChanged }: Omit<ListeningOptions, 'cut'>, signal: AbortSignal): Promise<void> {
  let isFirst = true;
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      const subscription = await client.listen({ toolsListChanged: true }, { timeout: ACKNOWLEDGED_WITHIN_MS, signal }); // no fail point: waits
      if (!isFirst) onListChanged();
      isFirst = false;
      await subscription.closed; // no fail point: waits
    } catch {
      // A server without this stream: its list is read again when it has become old.
    }
    await pause(pauseMs, undefined, { signal, ref: false }).catch(() => {}); // no fail point: pauses
  }
}
