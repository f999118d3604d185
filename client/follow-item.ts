import type { AgentError } from './agent-error.ts';
import type { AgentEvent } from './api.ts';

/** A piece of a reply in generation, which is no event of the log yet. */
export type ReplyItem =
  /** Is appended to the text of the reply. */
  | { type: 'delta'; messageId: string; seq: number; text: string }
  /** Replaces the whole text of the reply. */
  | { type: 'snapshot'; messageId: string; seq: number; text: string }
  /** No message will follow. */
  | { type: 'reply-cancelled'; messageId: string };

export interface ConnectionItem {
  type: 'connection';
  /** `waiting`: until the next try. */
  state: 'connecting' | 'open' | 'waiting';
  transport: 'stream' | 'polling';
  /** Of `waiting`; otherwise null. */
  retryInMs: number | null;
  /** Why the connection was lost, of `waiting`; null: the server ended it, such as before a restart. */
  error: AgentError | null;
}

/** `event`: each offset once, in order. */
export type FollowItem = { type: 'event'; event: AgentEvent } | ReplyItem | ConnectionItem;
