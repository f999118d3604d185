import { pause } from './abort.ts';
import { clientError } from './agent-error.ts';
import type { AgentEvent } from './api.ts';
import { eventOf } from './event-stream.ts';
import { type Connection, request } from './http.ts';

const PAGE_EVENTS = 200;
/** Without the header: the server's own pause after an empty poll. */
const DEFAULT_BACKOFF_SECONDS = 1;
const MAX_BACKOFF_SECONDS = 60;

/**
 * Polls a session's events until `performance.now()` is `untilMs`, a page at a time: the first poll does not wait, later ones are long-polls. Pauses as long as
 * `x-polling-backoff` says.
 *
 * @param after offset of the last event that the reader has; -1: none
 * @throws AgentError; the signal's reason after an abort
 */
export async function* eventPolls(
  connection: Connection,
  sessionId: string,
  { after, untilMs }: { after: number; untilMs: number },
  signal: AbortSignal | undefined,
): AsyncGenerator<AgentEvent[]> {
  let last = after;
  for (let isFirst = true; !signal?.aborted; isFirst = false) {
    const query = `min_offset=${last + 1}&limit=${PAGE_EVENTS}${isFirst ? '&wait_for_data=0' : ''}`;
    const path = `/sessions/${encodeURIComponent(sessionId)}/events?${query}`;
    const { headers, value } = await request(connection, { method: 'GET', path, headers: { accept: 'application/json' } }, signal);
    if (!Array.isArray(value)) throw clientError('client.bad_answer', 'the answer to a poll is no list of events');
    const events = value.map(eventOf);
    last = events.at(-1)?.offset ?? last;
    yield events;
    if (performance.now() >= untilMs) return;
    await pause(backoffMs(headers.get('x-polling-backoff'), events.length === 0), signal);
  }
}

function backoffMs(header: string | null, isEmpty: boolean): number {
  const seconds = header === null || !/^\d+$/.test(header) ? (isEmpty ? DEFAULT_BACKOFF_SECONDS : 0) : Number(header);
  return Math.min(seconds, MAX_BACKOFF_SECONDS) * 1_000;
}
