import type { ReadyFrame, TextFrame } from '#bus/messages/frame.ts';
import { type FrameHandler, OrderedFrames } from '#bus/messages/ordered-frames.ts';
import { textInChunks } from '#shared/surfaces/chat-completions/text-in-chunks.ts';
import { textIn, textOf } from '#shared/surfaces/parts/text-in.ts';
import { limits } from '../limits.ts';
import type { TurnCall } from './turn-call.ts';

interface ReplyDeps {
  callId: string;
  messageId: string;
  call: TurnCall | null;
  emit(sse: string): void;
  /** @param upTo as in `TokenStream.replay` */
  replay(upTo: 'kept' | 'now'): Promise<Uint8Array[]>;
  /** Nothing more can be shown: readers keep what they have until the message comes from the log. */
  onBroken(): void;
}

/** No event is written around a text. */
const NO_TEMPLATE = { prefix: new Uint8Array(), suffix: new Uint8Array() };

/** A reply in generation: the frames of its call become deltas. */
export class Reply implements FrameHandler {
  readonly messageId: string;
  readonly call: TurnCall | null;
  text = '';
  readonly #deps: ReplyDeps;
  readonly #frames: OrderedFrames;
  /** Of the last delta or snapshot. */
  #seq = 0;
  /** The text sent is void: the next one is a snapshot. */
  #isReplaced = false;
  /** A replay found text. */
  #isBehind = false;

  constructor(deps: ReplyDeps) {
    const { callId, replay } = deps;
    this.messageId = deps.messageId;
    this.call = deps.call;
    this.#deps = deps;
    this.#frames = new OrderedFrames({ callId, replay, maxPendingBytes: limits.pendingBytes, unstatedTemplate: () => NO_TEMPLATE }, this);
  }

  receive(bytes: Uint8Array): void {
    this.#frames.receive(bytes);
  }

  snapshot(): string {
    return sseOf('snapshot', { message_id: this.messageId, seq: this.#seq, text: this.text });
  }

  /** There will be no message: readers with some of it get `cancelled`. */
  cancel(): void {
    if (this.#seq > 0) this.#deps.emit(sseOf('delta', { message_id: this.messageId, seq: this.#seq + 1, cancelled: true }));
  }

  close(): void {
    this.#frames.close();
  }

  onText({ text }: TextFrame): void {
    this.#add(textOf(text));
  }

  onReady(frame: ReadyFrame): void {
    if (frame.kind === 'content') this.#add(frame.template === 'unstated' ? textInChunks(frame.sse) : textIn(frame.sse));
  }

  /** A worker that takes over starts again. */
  onAttempt(): boolean {
    this.#isReplaced ||= this.#seq > 0;
    this.text = '';
    return true;
  }

  onReplayed(): void {
    if (this.text !== '' && (this.#isBehind || this.#isReplaced)) this.#emitText(null);
    this.#isBehind = false;
  }

  onLost(): void {
    this.#deps.onBroken();
  }

  onOverflow(): void {
    this.#deps.onBroken();
  }

  onForeign(): void {}

  onNothingLeft(): void {}

  #add(piece: string): void {
    if (piece === '') return;
    if (this.text.length + piece.length > limits.replyCharacters) {
      this.#deps.onBroken();
      return;
    }
    this.text += piece;
    if (this.#frames.isCatchingUp) this.#isBehind = true;
    else this.#emitText(piece);
  }

  /** @param piece null: the whole text */
  #emitText(piece: string | null): void {
    this.#seq += 1;
    const isDelta = piece !== null && !this.#isReplaced;
    this.#deps.emit(isDelta ? sseOf('delta', { message_id: this.messageId, seq: this.#seq, text: piece }) : this.snapshot());
    this.#isReplaced = false;
  }
}

/** No `id:`: only the log can be resumed. */
function sseOf(event: 'delta' | 'snapshot', data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
