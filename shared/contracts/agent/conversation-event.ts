/**
 * The events of a session's log as every reader gets them: long-poll, SSE, event webhooks (agent-server, "Conversation events").
 * Offsets are dense from 0. A stored event never changes: tokens of a reply in the making travel outside the log.
 */
export type EventSource = 'customer' | 'customer_ui' | 'ai_agent' | 'human_agent' | 'human_agent_on_behalf_of_ai_agent' | 'system';

export type SessionStatus = 'acknowledged' | 'typing' | 'processing' | 'ready' | 'cancelled' | 'error';

/** What is particular to a kind. */
export type EventContent =
  | { kind: 'user_message' | 'preamble' | 'assistant_message'; text: string }
  /** `stage`: a sub-label for display, null unless processing: `matching`, `tools`, `retrieving`, `thinking`, `composing`, or a progress text. */
  | { kind: 'status'; status: SessionStatus; stage: string | null; error_detail: string | null }
  | { kind: 'tool'; tool_calls: { tool_id: string; arguments: Record<string, unknown>; result: { data: unknown; metadata: Record<string, unknown> } }[] };

export type ConversationEvent = {
  id: string;
  /** Position in the session's log: resume with the last one plus 1. */
  offset: number;
  /** RFC 3339 with `Z`, to the millisecond. */
  created_at: string;
  source: EventSource;
  /** 32 hex: the turn, or the injection, that the event belongs to. */
  trace_id: string;
  metadata: Record<string, unknown>;
} & EventContent;
