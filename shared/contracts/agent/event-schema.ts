import { z } from 'zod';

const json = z.record(z.string(), z.unknown());

export const eventSource = z.enum(['customer', 'customer_ui', 'ai_agent', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system']);

/** Of every event. All but `offset` and `created_at` are this server's additions to the contract, which consumers may ignore. */
const common = {
  /** Position in the session's log: resume at the last one plus 1, dedupe by session and offset. */
  offset: z.int().min(0),
  /** RFC 3339 in UTC, with milliseconds. */
  created_at: z.iso.datetime(),
  id: z.string().optional(),
  source: eventSource.optional(),
  /** 32 hex digits. */
  trace_id: z.string().optional(),
  metadata: json.optional(),
};

/** The author of a message, as its poster states it. */
const participant = z.object({ id: z.string().nullable(), display_name: z.string() });

function message(kind: 'user_message' | 'preamble' | 'assistant_message') {
  return z.object({ kind: z.literal(kind).default(kind), ...common, text: z.string(), participant: participant.optional() });
}

const status = z.object({
  kind: z.literal('status').default('status'),
  ...common,
  status: z.enum(['acknowledged', 'typing', 'processing', 'ready', 'cancelled', 'error']),
  /** A label beside `processing`. */
  stage: z.string().nullable().optional(),
  /** Only of `error`. */
  error_detail: z.string().nullable().optional(),
  /** Any JSON value, of statuses that front ends post. */
  data: z.unknown().optional(),
});

const tool = z.object({
  kind: z.literal('tool').default('tool'),
  ...common,
  /** All calls of one batch. */
  tool_calls: z.array(z.object({ tool_id: z.string(), arguments: json, result: z.object({ data: z.unknown(), metadata: json }) })),
});

/** Of a front end: any JSON value. */
const custom = z.object({ kind: z.literal('custom').default('custom'), ...common, data: z.unknown() });

/** Events of a session's log by kind, as polls, streams and event webhooks deliver them. Consumers ignore other kinds, and messages without text. */
export const eventSchemas = {
  user_message: message('user_message'),
  preamble: message('preamble'),
  assistant_message: message('assistant_message'),
  status,
  tool,
  custom,
};
