import { z } from 'zod';

/** The only version so far. Callbacks on the same queue have version 1, so workers of the release before leave these items to others. */
export const EVENT_WORK_VERSION = 2;

/** One round of a session's event webhook, on `work.delivery`: the events of an interval, each posted by a request of its own, in order. */
export const eventWork = z.object({
  v: z.literal(EVENT_WORK_VERSION),
  type: z.literal('events'),
  effectId: z.string(),
  /** Its owner gets the result. */
  sessionId: z.string(),
  /** Whose key the posts carry. */
  bundleHash: z.string(),
  url: z.string(),
  /** Null: all. */
  kinds: z.array(z.string()).nullable(),
  fromOffset: z.number(),
  /** Exclusive. */
  toOffset: z.number(),
  /** Failed attempts of the event at `fromOffset`. */
  attempts: z.number(),
  /** Since when that event waits, after a failure or a pause; null: it does not. */
  waitingSinceMs: z.number().nullable(),
  /** Epoch milliseconds after which no event is begun. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** May have been published before, as after a take-over: the worker first checks the effect's row. */
  republished: z.boolean(),
  traceparent: z.string().nullable(),
});
export type EventWork = z.infer<typeof eventWork>;

/** Body of an event's dead letter. It has no content of the event, which goes with its session. */
export const deadEvent = z.object({ v: z.literal(1), sessionId: z.string(), offset: z.number(), url: z.string(), bundleHash: z.string() });
export type DeadEvent = z.infer<typeof deadEvent>;

/** Id of an event's dead letter. */
export function deadEventId(sessionId: string, offset: number): string {
  return `${sessionId}-event-${offset}`;
}

/** Id of the effect that posts a dead event again. @param id of the dead letter */
export function replayOf(id: string, unique: string): string {
  return `${id}-replay-${unique}`;
}
