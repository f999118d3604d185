import type { AgentEvent } from './api.ts';
import type { ReplyItem } from './follow-item.ts';

/** Ended replies that are remembered, to drop late pieces of them. */
const MAX_ENDED = 64;

/** What a stream sends of a reply. */
export interface ReplyPiece {
  kind: 'delta' | 'snapshot';
  messageId: string;
  seq: number;
  /** Null: the reply is cancelled. */
  text: string | null;
}

/**
 * The replies of which the reader has some text. Deltas can't be resumed: after a reconnect a reply continues with a snapshot, or has ended meanwhile, which
 * the log says.
 */
export class OpenReplies {
  /** True: received on an earlier connection, so the text may miss pieces. */
  readonly #isStale = new Map<string, boolean>();
  readonly #ended = new Set<string>();

  onDisconnect(): void {
    for (const id of this.#isStale.keys()) this.#isStale.set(id, true);
  }

  /** @returns null for a piece that continues a text which the reader does not have */
  onPiece({ kind, messageId, seq, text }: ReplyPiece): ReplyItem | null {
    if (this.#ended.has(messageId)) return null;
    const isStale = this.#isStale.get(messageId);
    if (text === null) {
      if (isStale === undefined) return null;
      this.#end(messageId);
      return { type: 'reply-cancelled', messageId };
    }
    // The first delta has the whole text, too.
    if (kind === 'delta' && seq > 1 && isStale !== false) return null;
    this.#isStale.set(messageId, false);
    return { type: isStale === true ? 'snapshot' : kind, messageId, seq, text };
  }

  /** @returns the replies that end without a message, to be sent before the event */
  onEvent(event: AgentEvent): ReplyItem[] {
    if (event.kind === 'assistant_message') {
      this.#end(event.id);
      return [];
    }
    if (event.kind !== 'status' || event.source !== 'ai_agent' || !['ready', 'cancelled', 'error'].includes(event.status)) return [];
    // Of a reply on this connection the server says itself that it is cancelled.
    const stale = [...this.#isStale].filter(([, isStale]) => isStale).map(([id]) => id);
    for (const id of stale) this.#end(id);
    return stale.map((messageId) => ({ type: 'reply-cancelled', messageId }));
  }

  #end(messageId: string): void {
    this.#isStale.delete(messageId);
    this.#ended.add(messageId);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }
}
