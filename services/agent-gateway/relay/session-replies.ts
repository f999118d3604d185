import { z } from 'zod';
import { type Frame, readFrame } from '#bus/messages/frame.ts';
import { replyEventId } from '#bus/messages/session.ts';
import type { LoggedEvent } from '../feed/session-log.ts';
import { limits } from '../limits.ts';
import { isSupersededBy, type TurnCall, turnCallOf } from './turn-call.ts';

/** A reply in generation. */
interface Reply {
  readonly callId: string;
  readonly messageId: string;
  readonly call: TurnCall | null;
  /** The delivery of the call: a worker that takes over starts again. */
  attempt: number;
  nextFrame: number;
  text: string;
  seq: number;
  /** The text sent is void: the next one is a snapshot. */
  isReplaced: boolean;
  /** Received while lost ones are fetched; null: none is missing. */
  buffered: SequencedFrame[] | null;
}

type SequencedFrame = Exclude<Frame, { kind: 'body' }>;

/** Tries for missing frames: the last ones are retained a little after they are published, later by a busy worker. */
const REPLAYS = ['kept', 'now', 'now'] as const;

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
    return [...this.#replies.values()].filter(({ text }) => text !== '').map(snapshotOf);
  }

  onFrame(callId: string, bytes: Uint8Array): void {
    const reply = this.#replies.get(replyEventId(callId)) ?? this.#begin(callId);
    const frame = reply && sequenced(callId, bytes);
    if (reply == null || frame === null) return;
    if (reply.buffered === null) this.#apply(reply, frame);
    else if (reply.buffered.length < limits.bufferedFrames) reply.buffered.push(frame);
    else this.#end(reply);
  }

  /**
   * A message ends its reply; a status that ends a turn discards the turn's replies.
   * @param isNew just appended: reading an old log passes the ends of turns long over
   */
  observe(event: LoggedEvent, isNew: boolean): void {
    if (event.kind === 'assistant_message') {
      const reply = this.#replies.get(event.id);
      if (reply === undefined) this.#noteEnded(event.id);
      else this.#end(reply);
      return;
    }
    const endedAtMs = event.kind === 'status' ? endOfTurn(event.text) : null;
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
    const reply: Reply = { callId, messageId, call, attempt: 1, nextFrame: 1, text: '', seq: 0, isReplaced: false, buffered: null };
    this.#replies.set(messageId, reply);
    return reply;
  }

  #apply(reply: Reply, frame: SequencedFrame): void {
    if (frame.attempt < reply.attempt) return;
    if (frame.attempt > reply.attempt) {
      reply.isReplaced ||= reply.seq > 0;
      Object.assign(reply, { attempt: frame.attempt, nextFrame: 1, text: '' });
    }
    if (frame.seq < reply.nextFrame) return;
    if (frame.seq > reply.nextFrame) {
      reply.buffered = [frame];
      void this.#fill(reply);
      return;
    }
    reply.nextFrame += 1;
    const piece = textOf(frame);
    if (piece === '') return;
    if (reply.text.length + piece.length > limits.replyCharacters) {
      this.#end(reply);
      return;
    }
    reply.text += piece;
    reply.seq += 1;
    this.#deps.emit(reply.isReplaced ? snapshotOf(reply) : sseOf('delta', { message_id: reply.messageId, seq: reply.seq, text: piece }));
    reply.isReplaced = false;
  }

  /** Frames were lost, or this gateway subscribed later. Rebuilds the text from a replay. */
  async #fill(reply: Reply): Promise<void> {
    let whole: ReturnType<typeof textFrom> = null;
    for (const upTo of REPLAYS) {
      const replayed = await this.#deps.replay(reply.callId, upTo).catch(() => []);
      if (this.#replies.get(reply.messageId) !== reply || reply.buffered === null) return;
      whole = textFrom([...replayed.flatMap((bytes) => sequenced(reply.callId, bytes) ?? []), ...reply.buffered]);
      if (whole !== null) break;
    }
    reply.buffered = null;
    // Still incomplete: readers keep what they have until the message comes from the log.
    if (whole === null || whole.text.length > limits.replyCharacters) {
      this.#end(reply);
      return;
    }
    const isChanged = whole.text !== reply.text || reply.isReplaced;
    Object.assign(reply, whole);
    if (!isChanged || reply.text === '') return;
    reply.seq += 1;
    reply.isReplaced = false;
    this.#deps.emit(snapshotOf(reply));
  }

  /** There will be no message: readers with some of it get `cancelled`. */
  #discard(reply: Reply): void {
    if (reply.seq > 0) this.#deps.emit(sseOf('delta', { message_id: reply.messageId, seq: reply.seq + 1, cancelled: true }));
    this.#end(reply);
  }

  #end(reply: Reply): void {
    this.#replies.delete(reply.messageId);
    this.#noteEnded(reply.messageId);
  }

  close(): void {
    this.#replies.clear();
  }

  #noteEnded(messageId: string): void {
    this.#ended.add(messageId);
    const [oldest] = this.#ended;
    if (this.#ended.size > limits.endedReplies && oldest !== undefined) this.#ended.delete(oldest);
  }
}

/** Null when a frame of the latest attempt is missing. */
function textFrom(frames: readonly SequencedFrame[]): { attempt: number; nextFrame: number; text: string } | null {
  const attempt = frames.reduce((latest, frame) => Math.max(latest, frame.attempt), 1);
  const bySeq = new Map(frames.filter((frame) => frame.attempt === attempt).map((frame) => [frame.seq, frame]));
  let text = '';
  for (let seq = 1; seq <= bySeq.size; seq += 1) {
    const frame = bySeq.get(seq);
    if (frame === undefined) return null;
    text += textOf(frame);
  }
  return { attempt, nextFrame: bySeq.size + 1, text };
}

function sequenced(callId: string, bytes: Uint8Array): SequencedFrame | null {
  const frame = readFrame(callId, bytes);
  return frame === null || frame.kind === 'body' ? null : frame;
}

const chunk = z.object({ choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })) });

function textOf(frame: SequencedFrame): string {
  if (frame.kind === 'text') return textIn(frame.json);
  if (frame.kind !== 'content') return '';
  const lines = stringOf(frame.sse).split('\n');
  return lines.map((line) => (line.startsWith('data:') ? deltaOf(line.slice('data:'.length)) : '')).join('');
}

function textIn(json: Uint8Array): string {
  try {
    return z.string().parse(JSON.parse(stringOf(json)));
  } catch {
    return '';
  }
}

function stringOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

function deltaOf(data: string): string {
  try {
    return chunk.parse(JSON.parse(data)).choices[0]?.delta.content ?? '';
  } catch {
    return '';
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

function snapshotOf({ messageId, seq, text }: Reply): string {
  return sseOf('snapshot', { message_id: messageId, seq, text });
}

/** No `id:`: only the log can be resumed. */
function sseOf(event: 'delta' | 'snapshot', data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
