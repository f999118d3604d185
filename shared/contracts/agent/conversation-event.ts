/**
 * A session's log as long-poll, SSE and event webhooks return it (agent-server, "Conversation events"). Offsets are dense
 * from 0, but for deleted events. Only the metadata of a stored event may change: tokens of a reply in progress are not in the log.
 */
export type EventSource = 'customer' | 'customer_ui' | 'ai_agent' | 'human_agent' | 'human_agent_on_behalf_of_ai_agent' | 'system';

export const sessionStatuses = ['acknowledged', 'typing', 'processing', 'ready', 'cancelled', 'error'] as const;

export type SessionStatus = (typeof sessionStatuses)[number];

/** The author of a message, as the poster states it: for display, checked against nothing. */
interface Participant {
  id: string | null;
  display_name: string;
}

export type EventContent =
  | { kind: 'user_message' | 'preamble' | 'assistant_message'; text: string; participant?: Participant }
  /** Of a front end: any JSON value, not for the model. */
  | { kind: 'custom'; data: unknown }
  /** `data`: only from front ends, whose statuses say nothing about turns. `stage`: a display label or progress text, null unless processing; labels: `matching`, `tools`, `retrieving`, `thinking`, `composing`. */
  | { kind: 'status'; status: SessionStatus; stage: string | null; error_detail: string | null; data?: unknown }
  | { kind: 'tool'; tool_calls: { tool_id: string; arguments: Record<string, unknown>; result: { data: unknown; metadata: Record<string, unknown> } }[] };

export type ConversationEvent = {
  id: string;
  /** Position in the session's log; a reader resumes at the last one plus 1. */
  offset: number;
  /** RFC 3339 in UTC (`Z`), with milliseconds. */
  created_at: string;
  source: EventSource;
  /** 32 hex digits, of the event's turn or injection. */
  trace_id: string;
  metadata: Record<string, unknown>;
} & EventContent;
