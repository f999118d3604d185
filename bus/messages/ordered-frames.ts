import { deliveryOf } from './attempt-number.ts';
import { EventTemplate } from './event-template.ts';
import { behindEvents, type ContentFrame, type Frame, type ReadyFrame, readFrame, type TemplateBytes, type TextFrame } from './frame.ts';

/** Replays for one gap. All but the first wait until recent frames are part of a replay. */
const MAX_GAP_REPLAYS = 3;

/** A frame that has a number. */
export type NumberedFrame = Exclude<Frame, { kind: 'body' }>;

/** Last event of a resumed reader: it has the first `events` events of this frame. */
export interface EventPosition {
  attempt: number;
  seq: number;
  events: number;
}

export interface FrameSource {
  callId: string;
  /** The call's stored frames, bounded in time. */
  replay(upTo: 'kept' | 'now'): Promise<Uint8Array[]>;
  /** Of frames that arrive during a replay. */
  maxPendingBytes: number;
  /** The template in content of the release before, which states none; null for an event without one. */
  unstatedTemplate(sse: Uint8Array): TemplateBytes | null;
}

/** No method may throw. After `close` none is called. */
export interface FrameHandler {
  /** Any frame but a text; a whole body has no number and is passed on as it comes. */
  onReady(frame: ReadyFrame): void;
  /** A text whose event is `template.eventOf(frame.seq, frame.text)`. */
  onText(frame: TextFrame, template: EventTemplate): void;
  /** Another attempt begins, of which this frame came first. @returns false when it is not to be read */
  onAttempt(frame: NumberedFrame): boolean;
  /** Of a resumed reader: the last event that it has, once it is found. Not called for one that begins before a frame's first event. */
  onPosition?(sse: Uint8Array): void;
  /** The terminal frame, of which a resumed reader has all events. */
  onNothingLeft(): void;
  /** A frame before this one is missing, or the template of this one, and no replay has it. */
  onLost(frame: NumberedFrame): void;
  /** Bytes that are no frame of the call. */
  onForeign(): void;
  /** More frames than `maxPendingBytes` came during a replay. */
  onOverflow(): void;
  /** What a replay found has been delivered. @param error why it found nothing; null when it was read */
  onReplayed(error: unknown): void;
}

/**
 * The frames of one call in order, each once. Live frames may be lost, repeated or come from a worker that lost the call:
 *
 *   earlier delivery, repeated seq   dropped
 *   later delivery                   begins anew, if the handler agrees
 *   a second one with its number     likewise with its content, unless the first has some: else dropped
 *   a gap, a text without template   replay; one that three replays leave open is lost
 */
export class OrderedFrames {
  readonly #source: FrameSource;
  readonly #handler: FrameHandler;
  #attempt = 0;
  #nextSeq = 1;
  /** Of this attempt, or its end, was passed on. */
  #hasContent = false;
  #resumedAfter: EventPosition | null = null;
  #template: EventTemplate | null = null;
  /** Frames that arrive before or during a replay; null when they are delivered as they come. */
  #pending: Uint8Array[] | null = null;
  #pendingBytes = 0;
  #isReplaying = false;
  #isCatchingUp = false;
  #gap = { position: '', replays: 0 };
  #isClosed = false;

  constructor(source: FrameSource, handler: FrameHandler) {
    this.#source = source;
    this.#handler = handler;
  }

  /** That is read; 0 before its first frame. */
  get attempt(): number {
    return this.#attempt;
  }

  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  /** Whether frames are those of a replay: they come all at once. */
  get isCatchingUp(): boolean {
    return this.#isCatchingUp;
  }

  /** Delivers nothing before the next replay. @param after null: from the start */
  resume(after: EventPosition | null): void {
    this.#pending = [];
    if (after === null) return;
    // The reader has content of this attempt. The last frame may have further events.
    this.#attempt = after.attempt;
    this.#nextSeq = Math.max(after.seq, 1);
    this.#hasContent = true;
    this.#resumedAfter = after;
  }

  receive(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#pending === null) {
      this.#read(bytes);
      return;
    }
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.byteLength;
    if (this.#pendingBytes > this.#source.maxPendingBytes) this.#handler.onOverflow();
  }

  /** Delivers the stored frames, then those that arrived meanwhile. A replay that runs is not repeated. */
  replay(): void {
    if (!this.#isClosed && !this.#isReplaying) this.#replay('kept');
  }

  close(): void {
    this.#isClosed = true;
    this.#pending = null;
  }

  #read(bytes: Uint8Array): void {
    const frame = readFrame(this.#source.callId, bytes);
    if (frame === null) {
      this.#handler.onForeign();
      return;
    }
    if (frame.kind === 'body') {
      this.#handler.onReady(frame);
      return;
    }
    if (frame.attempt !== this.#attempt && !this.#begins(frame)) return;
    if (frame.kind === 'content') this.#noteTemplate(frame);
    if (frame.seq < this.#nextSeq) return;
    const template = this.#template;
    if (frame.seq > this.#nextSeq || (frame.kind === 'text' && template?.attempt !== frame.attempt)) {
      this.#fillGap(frame, bytes);
      return;
    }
    this.#nextSeq += 1;
    this.#hasContent ||= frame.kind !== 'open';
    if (frame.seq === this.#resumedAfter?.seq) this.#deliverRest(frame, this.#resumedAfter.events);
    else if (frame.kind === 'text') this.#handler.onText(frame, template as EventTemplate);
    else this.#handler.onReady(frame);
  }

  /** @returns false when the frame's attempt is not read */
  #begins(frame: NumberedFrame): boolean {
    const later = deliveryOf(frame.attempt) - deliveryOf(this.#attempt);
    const isContent = frame.kind === 'content' || frame.kind === 'text' || frame.kind === 'done';
    // Both may run on: the first content decides, so that they do not replace each other again and again.
    if (later < 0 || (later === 0 && (this.#hasContent || !isContent))) return false;
    if (!this.#handler.onAttempt(frame)) return false;
    this.#attempt = frame.attempt;
    this.#nextSeq = 1;
    this.#hasContent = false;
    return true;
  }

  /** The frame in whose middle a reader resumes. */
  #deliverRest(frame: NumberedFrame, events: number): void {
    if (frame.kind === 'text') {
      if (events === 0) this.#handler.onText(frame, this.#template as EventTemplate);
      else this.#handler.onPosition?.((this.#template as EventTemplate).eventOf(frame.seq, frame.text));
      return;
    }
    if (events > 0) this.#handler.onPosition?.(behindEvents(frame.sse, events - 1));
    if (this.#isClosed) return;
    const sse = behindEvents(frame.sse, events);
    if (sse.byteLength > 0) this.#handler.onReady({ ...frame, sse });
    else if (frame.kind === 'done' || frame.kind === 'error') this.#handler.onNothingLeft();
  }

  #noteTemplate({ attempt, sse, template }: ContentFrame): void {
    if (template === null || this.#template?.attempt === attempt) return;
    const stated = template === 'unstated' ? this.#source.unstatedTemplate(sse) : template;
    if (stated !== null) this.#template = new EventTemplate(this.#source.callId, attempt, stated);
  }

  /** Finds the template of a resumed reader in any frame: the first may be expired, and workers repeat it now and then. */
  #seekTemplate({ attempt }: EventPosition, frames: readonly Uint8Array[]): void {
    for (const bytes of frames) {
      if (this.#template?.attempt === attempt) return;
      const frame = readFrame(this.#source.callId, bytes);
      if (frame?.kind === 'content' && frame.attempt === attempt) this.#noteTemplate(frame);
    }
  }

  #fillGap(frame: NumberedFrame, bytes: Uint8Array): void {
    const position = `${this.#attempt}.${this.#nextSeq}`;
    const replays = this.#gap.position === position ? this.#gap.replays : 0;
    if (replays >= MAX_GAP_REPLAYS) {
      this.#handler.onLost(frame);
      return;
    }
    this.#gap = { position, replays: replays + 1 };
    this.#pending = [bytes];
    this.#pendingBytes = 0;
    // A replay that has just been read would find no more.
    this.#replay(replays === 0 && !this.#isCatchingUp ? 'kept' : 'now');
  }

  #replay(upTo: 'kept' | 'now'): void {
    this.#isReplaying = true;
    this.#isCatchingUp = true;
    this.#pending ??= [];
    this.#source.replay(upTo).then(
      (frames) => this.#deliver(frames, null),
      (error: unknown) => this.#deliver([], error),
    );
  }

  #deliver(replayed: readonly Uint8Array[], error: unknown): void {
    this.#isReplaying = false;
    if (this.#isClosed) return;
    const frames = [...replayed, ...(this.#pending ?? [])];
    this.#pending = null;
    this.#pendingBytes = 0;
    // Early frames of a long answer are expired; before the reader's position that is no gap.
    if (this.#resumedAfter !== null) this.#seekTemplate(this.#resumedAfter, frames);
    for (const bytes of frames) {
      this.#read(bytes);
      // The call has ended, or another replay began, which includes the rest.
      if (this.#isClosed || this.#pending !== null) return;
    }
    this.#isCatchingUp = false;
    this.#handler.onReplayed(error);
  }
}
