import type { Cancellation } from '../cancellation.ts';
import type { EventFeeds, FeedReader } from './event-feeds.ts';
import { type EventFilter, type LoggedEvent, matches, type PageText, type SessionLog } from './session-log.ts';

export interface PollQuery {
  filter: EventFilter;
  minOffset: number;
  limit: number;
  waitMs: number;
}

/** What a poll returns: events as clients get them. */
export type PolledEvents = Pick<PageText, 'pieces' | 'count'>;

/**
 * Waits for an event that matches the query. Empty on timeout or when `ending` ends; null when there is no such session or it is deleted meanwhile. Costs at
 * most one query, none when the feed has the events or there are none yet.
 */
export async function longPoll(
  { feeds, sessionLog }: { feeds: EventFeeds; sessionLog: SessionLog },
  sessionId: string,
  { filter, minOffset, limit, waitMs }: PollQuery,
  cancellation: Cancellation,
): Promise<PolledEvents | null> {
  // The feed may lag behind the database.
  if (waitMs === 0) {
    const page = await sessionLog.readText(sessionId, filter, minOffset, limit);
    if (page !== null) feeds.noteHead(sessionId, page.head);
    return page;
  }

  const endsAtMs = performance.now() + waitMs;
  const reader = feeds.read(sessionId);
  try {
    if (reader.head === null) await reader.ready();
    let next = minOffset;
    while ((reader.head === null || next < reader.head) && !cancellation.isCancelled) {
      const before = reader.head;
      const known = reader.newest(next);
      if (known !== null) {
        const matching = known.filter((event) => matches(filter, event));
        if (matching.length > 0) return joined(matching.slice(0, limit));
        next = before ?? next;
        continue;
      }
      const page = await sessionLog.readText(sessionId, filter, next, limit);
      if (page === null) return null;
      reader.noteHead(page.head, before);
      if (page.count > 0) return page;
      next = page.next;
    }
    const events = await nextEvents(reader, { filter, minOffset: next }, endsAtMs - performance.now(), cancellation);
    return events === null ? null : joined(events.slice(0, limit));
  } finally {
    reader.release();
  }
}

/** The next matching events. No await may come between the last check of the feed's head and this call, or events are missed. */
function nextEvents(reader: FeedReader, { filter, minOffset }: { filter: EventFilter; minOffset: number }, waitMs: number, cancellation: Cancellation) {
  return new Promise<LoggedEvent[] | null>((resolve) => {
    const settle = (events: LoggedEvent[] | null) => {
      clearTimeout(timer);
      cancellation.onCancel = null;
      resolve(events);
    };
    const onTimeout = () => settle([]);
    const timer = setTimeout(onTimeout, Math.max(waitMs, 0));
    cancellation.onCancel = onTimeout;
    reader.subscribe({
      onEvents: (events) => {
        const matching = events.filter((event) => event.offset >= minOffset && matches(filter, event));
        if (matching.length > 0) settle(matching);
      },
      onDeleted: () => settle(null),
    });
  });
}

function joined(events: readonly LoggedEvent[]): PolledEvents {
  return { pieces: events.length === 0 ? [] : [events.map(({ text }) => text).join(',')], count: events.length };
}
