import { z } from 'zod';
import type { NoticeMessage } from '#bus/messages/session.ts';
import type { LoggedEvent } from './session-log.ts';

/** A parsed notice: the offsets by which a log has grown. */
export interface Notice {
  first: number;
  last: number;
  /** Null when too large, or when one is not an event: read the log. */
  events: LoggedEvent[] | null;
  isDeleted: boolean;
  /** Events that were read before may have changed or be deleted. */
  isChanged: boolean;
}

const message = z.object({
  v: z.literal(1),
  first: z.number().int().min(0),
  // Before `first` without events, as in the notices of a deletion and of a change.
  last: z.number().int().min(-1),
  events: z.array(z.string()).nullable(),
  isDeleted: z.boolean().default(false),
  isChanged: z.boolean().default(false),
}) satisfies z.ZodType<NoticeMessage>;

const eventFace = z.object({ offset: z.number(), id: z.string(), kind: z.string(), source: z.string(), trace_id: z.string() });

/** Null: unknown to this version. */
export function noticeOf(body: string): Notice | null {
  try {
    const { first, last, events, isDeleted, isChanged } = message.parse(JSON.parse(body));
    return { first, last, events: events === null ? null : eventsOf(events), isDeleted, isChanged };
  } catch {
    return null;
  }
}

function eventsOf(texts: readonly string[]): LoggedEvent[] | null {
  try {
    return texts.map((text) => {
      const { offset, id, kind, source, trace_id } = eventFace.parse(JSON.parse(text));
      return { offset, id, kind, source, traceId: trace_id, text };
    });
  } catch {
    return null;
  }
}
