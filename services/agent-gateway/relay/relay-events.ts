import type { PacedSseWriter } from '#shared/http-server/paced-sse-writer.ts';
import type { FeedReader } from '../feed/event-feeds.ts';
import { type EventFilter, type LoggedEvent, type LogPage, matches, type SessionLog } from '../feed/session-log.ts';
import { limits } from '../limits.ts';
import type { DeltaReader } from './deltas.ts';

export interface RelaySource {
  sessionLog: SessionLog;
  sessionId: string;
  filter: EventFilter;
  reader: FeedReader;
  deltas: DeltaReader | null;
}

const SESSION_DELETED = 'the session was deleted';

/**
 * Streams a log to a client: stored pages as fast as the client reads, then live events. Resolves when the client disconnects or the session is deleted.
 * @param first the first page, or its offset when the feed knows that there are no events yet
 */
export async function relayEvents(
  { sessionLog, sessionId, filter, reader, deltas }: RelaySource,
  client: PacedSseWriter,
  first: LogPage | number,
): Promise<void> {
  let page: LogPage | null = typeof first === 'number' ? { events: [], head: first, next: first } : first;
  while (page !== null && client.isOpen) {
    for (const event of page.events) {
      deltas?.observe(event);
      await client.send(sseOf(event));
    }
    const { next } = page;
    if (reader.head !== null && next >= reader.head) {
      // No await between the check of the head and these calls, or events are missed.
      reader.subscribe({
        onEvents: (events) => {
          for (const event of events) if (event.offset >= next && matches(filter, event)) client.write(sseOf(event));
        },
        onDeleted: () => client.end(SESSION_DELETED),
      });
      deltas?.start((sse) => client.write(sse));
      await client.closed;
      return;
    }
    const before = reader.head;
    page = await sessionLog.read(sessionId, filter, next, limits.streamPageEvents);
    if (page !== null) reader.noteHead(page.head, before);
  }
  client.end(SESSION_DELETED);
}

function sseOf({ offset, kind, text }: LoggedEvent): string {
  return `id: ${offset}\nevent: ${kind}\ndata: ${text}\n\n`;
}
