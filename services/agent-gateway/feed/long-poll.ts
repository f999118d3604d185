import type { Ending } from '../ending.ts';
import type { EventFeeds, FeedReader } from './event-feeds.ts';
import { type EventFilter, type LoggedEvent, matches, type SessionLog } from './session-log.ts';

export interface PollQuery {
  filter: EventFilter;
  minOffset: number;
  limit: number;
  /** 0 answers at once with what is there. */
  waitMs: number;
}

/**
 * Waits until the log holds an event that the query asks for: empty when none came in time, or when the wait was ended. Null
 * when there is no such session, or it was deleted meanwhile. A wait costs one query at most, and none when the feed knows what there is, or
 * that there is nothing to be read yet.
 */
export async function longPoll(
  { feeds, sessionLog }: { feeds: EventFeeds; sessionLog: SessionLog },
  sessionId: string,
  { filter, minOffset, limit, waitMs }: PollQuery,
  ending: Ending,
): Promise<LoggedEvent[] | null> {
  // Who asks for what is there now gets it from the database: what this process has heard of may be a moment older.
  if (waitMs === 0) {
    const page = await sessionLog.read(sessionId, filter, minOffset, limit);
    if (page !== null) feeds.noteHead(sessionId, page.head);
    return page?.events ?? null;
  }

  const endsAtMs = performance.now() + waitMs;
  const reader = feeds.read(sessionId);
  try {
    if (reader.head === null) await reader.ready();
    let next = minOffset;
    while ((reader.head === null || next < reader.head) && !ending.isOver) {
      const before = reader.head;
      const known = reader.newest(next);
      if (known !== null) {
        const matching = known.filter((event) => matches(filter, event));
        if (matching.length > 0) return matching.slice(0, limit);
        next = before ?? next;
        continue;
      }
      const page = await sessionLog.read(sessionId, filter, next, limit);
      if (page === null) return null;
      reader.noteHead(page.head, before);
      if (page.events.length > 0) return page.events;
      next = page.next;
    }
    const events = await arrival(reader, { filter, minOffset: next }, endsAtMs - performance.now(), ending);
    return events?.slice(0, limit) ?? null;
  } finally {
    reader.release();
  }
}

/** The next events that match, as they come. Nothing is awaited between the last look at the feed's head and this. */
function arrival(reader: FeedReader, { filter, minOffset }: { filter: EventFilter; minOffset: number }, waitMs: number, ending: Ending) {
  return new Promise<LoggedEvent[] | null>((resolve) => {
    const settle = (events: LoggedEvent[] | null) => {
      clearTimeout(timer);
      ending.onEnd = null;
      resolve(events);
    };
    const giveUp = () => settle([]);
    const timer = setTimeout(giveUp, Math.max(waitMs, 0));
    ending.onEnd = giveUp;
    reader.listen({
      onEvents: (events) => {
        const matching = events.filter((event) => event.offset >= minOffset && matches(filter, event));
        if (matching.length > 0) settle(matching);
      },
      onDeleted: () => settle(null),
    });
  });
}
