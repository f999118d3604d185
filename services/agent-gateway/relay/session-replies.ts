import { z } from 'zod';
import { replyEventId } from '#bus/messages/session.ts';
import type { LoggedEvent } from '../feed/session-log.ts';
import { limits } from '../limits.ts';
import { Reply } from './reply.ts';
import { isSupersededBy, turnCallOf } from './turn-call.ts';

interface SessionRepliesDeps {
  emit(sse: string): void;
  /** The call's retained frames. @param upTo as in `TokenStream.replay` */
  replay(callId: string, upTo: 'kept' | 'now'): Promise<Uint8Array[]>;
}

/**
 * Turns frames of a session's model calls into deltas. Frames may be lost, late, or superseded. The log decides what becomes of a reply; nothing of it is sent
 * after that.
 */
export class SessionReplies {
  readonly #deps: SessionRepliesDeps;
  readonly #replies = new Map<string, Reply>();
  /** Oldest first. */
  readonly #ended = new Set<string>();
  /** Turns that began before this have ended; epoch milliseconds. */
  #endedBeforeMs = 0;

  constructor(deps: SessionRepliesDeps) {
    this.#deps = deps;
  }

  /** For a new reader. */
  snapshots(): string[] {
    return [...this.#replies.values()].filter(({ text }) => text !== '').map((reply) => reply.snapshot());
  }

  onFrame(callId: string, bytes: Uint8Array): void {
    const reply = this.#replies.get(replyEventId(callId)) ?? this.#begin(callId);
    reply?.receive(bytes);
  }

  /**
   * A message ends its reply; a status of the agent that ends a turn discards the turn's replies.
   * @param isNew just appended: reading an old log passes the ends of turns long over
   */
  observe(event: LoggedEvent, isNew: boolean): void {
    if (event.kind === 'assistant_message') {
      const reply = this.#replies.get(event.id);
      if (reply === undefined) this.#noteEnded(event.id);
      else this.#end(reply);
      return;
    }
    const endedAtMs = event.kind === 'status' && event.source === 'ai_agent' ? endOfTurn(event.text) : null;
    if (endedAtMs === null) return;
    this.#endedBeforeMs = Math.max(this.#endedBeforeMs, endedAtMs);
    // Frames of the next turn may have overtaken the end of this one.
    for (const reply of this.#replies.values()) if (reply.call === null ? isNew : reply.call.turnAtMs < endedAtMs) this.#discard(reply);
  }

  /** Null: ended or superseded. */
  #begin(callId: string): Reply | null {
    const messageId = replyEventId(callId);
    const call = turnCallOf(callId);
    if (this.#ended.has(messageId) || (call !== null && call.turnAtMs < this.#endedBeforeMs)) return null;
    for (const other of this.#replies.values()) {
      if (isSupersededBy(call, other.call)) return null;
      if (isSupersededBy(other.call, call)) this.#discard(other);
    }
    const [oldest] = this.#replies.values();
    if (this.#replies.size >= limits.repliesPerSession && oldest !== undefined) this.#end(oldest);
    const { emit, replay } = this.#deps;
    const reply: Reply = new Reply({ callId, messageId, call, emit, replay: (upTo) => replay(callId, upTo), onBroken: () => this.#end(reply) });
    this.#replies.set(messageId, reply);
    return reply;
  }

  /** There will be no message: readers with some of it get `cancelled`. */
  #discard(reply: Reply): void {
    reply.cancel();
    this.#end(reply);
  }

  #end(reply: Reply): void {
    reply.close();
    this.#replies.delete(reply.messageId);
    this.#noteEnded(reply.messageId);
  }

  close(): void {
    for (const reply of this.#replies.values()) reply.close();
    this.#replies.clear();
  }

  #noteEnded(messageId: string): void {
    this.#ended.add(messageId);
    const [oldest] = this.#ended;
    if (this.#ended.size > limits.endedReplies && oldest !== undefined) this.#ended.delete(oldest);
  }
}

const endingStatus = z.object({ status: z.enum(['cancelled', 'error', 'ready']), created_at: z.iso.datetime() });

/** Null: this status does not end a turn. */
function endOfTurn(text: string): number | null {
  try {
    return Date.parse(endingStatus.parse(JSON.parse(text)).created_at);
  } catch {
    return null;
  }
}
