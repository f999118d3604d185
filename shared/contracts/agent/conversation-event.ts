/**
 * A session's log as long-poll, SSE and event webhooks return it (agent-server, "Conversation events"). Offsets are dense from 0. Stored
 * events never change: tokens of a reply in progress are not in the log.
 */
export type EventSource = 'customer' | 'customer_ui' | 'ai_agent' | 'human_agent' | 'human_agent_on_behalf_of_ai_agent' | 'system';

export type SessionStatus = 'acknowledged' | 'typing' | 'processing' | 'ready' | 'cancelled' | 'error';

export type EventContent =
  | { kind: 'user_message' | 'preamble' | 'assistant_message'; text: string }
  /** `stage`: a display label or progress text, null unless processing; labels: `matching`, `tools`, `retrieving`, `thinking`, `composing`. */
  | { kind: 'status'; status: SessionStatus; stage: string | null; error_detail: string | null }
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
