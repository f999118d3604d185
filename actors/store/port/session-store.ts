import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';

/** A session as its last commit stored it. */
export interface StoredSession {
  id: string;
  partition: number;
  /** Number of events, so the next offset. */
  head: number;
  record: SessionRecord;
  /** The machines' states, parsed, of any version. */
  snapshot: unknown;
  isDeleted: boolean;
}

/** Where a deletion would cut a log: the first event at or above an offset that is not deleted. */
export interface LogCut {
  offset: number;
  /**
   * The first event that would be deleted, and whose turn has an event before the offset that would not; null: no turn would be split. A turn is the events of one
   * trace, up to its `ready`.
   */
  splitAt: number | null;
}

export interface SessionStore {
  /** Omits sessions that do not exist. */
  load(sessionIds: readonly string[]): Promise<StoredSession[]>;
  /** The newest messages and injected tool results up to and including an offset, in log order. */
  messages(sessionId: string, upToOffset: number, limit: number): Promise<ConversationEvent[]>;
  /** Null: there is no such event in the session, or it is deleted. */
  event(sessionId: string, eventId: string): Promise<ConversationEvent | null>;
  /** Null: there is no event at or above the offset. */
  cut(sessionId: string, minOffset: number): Promise<LogCut | null>;
}
