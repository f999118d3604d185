import { z } from 'zod';
import type { ConversationEvent, EventSource } from './conversation-event.ts';
import { wholeNumber } from './whole-number.ts';

const kinds = ['user_message', 'preamble', 'assistant_message', 'status', 'tool', 'custom'] as const satisfies readonly ConversationEvent['kind'][];

const sources = ['customer', 'customer_ui', 'ai_agent', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system'] as const satisfies readonly EventSource[];

/** Query of GET /sessions/{id}/events. An absent field does not filter; unknown fields are ignored. */
export const readEventsQuery = z.object({
  /** Events from this offset on: the last one read, plus 1. Absent: 0. */
  min_offset: wholeNumber.default(0),
  /** Only events of these kinds, comma-separated: user_message, preamble, assistant_message, status, tool, custom. */
  kinds: z
    .string()
    .transform((text) => text.split(',').map((kind) => kind.trim()))
    .pipe(z.array(z.enum(kinds)))
    .optional(),
  /** Only events of this source. */
  source: z.enum(sources).optional(),
  /** Only events of this trace. */
  trace_id: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be a trace id')
    .optional(),
  /** Seconds, 0 to 60, to wait for an event; 504 if none came. 0: an empty array at once. Absent: 20 s, then an empty array. */
  wait_for_data: z
    .string()
    .regex(/^\d{1,2}(\.\d{1,3})?$/, 'must be seconds from 0 to 60')
    .transform(Number)
    .pipe(z.number().max(60))
    .optional(),
  /** Events in one answer, 1 to 1,000. Absent: 200. */
  limit: wholeNumber.pipe(z.number().min(1).max(1_000)).default(200),
});

export type ReadEventsQuery = z.infer<typeof readEventsQuery>;
