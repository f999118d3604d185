import type { Retention } from '#bus/bus.ts';
import { errorFrame, sseFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterErrorBody, Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { AnswerHead, PartWriter, Surface } from '#shared/surfaces/surface.ts';

/** Frames are kept for two minutes; a reader that resumes later needs the template, too. */
const TEMPLATE_EVERY_MS = 30_000;

/** Retention of frames with a template, of text frames, and of the terminal one. */
export type FrameRetention = Readonly<Record<'head' | 'text' | 'end', Retention>>;

/** A redelivery must know whether content was published; a resuming reader needs the terminal frame. */
export const forClients: FrameRetention = { head: 'at once', text: 'soon', end: 'at once' };
/** The effect's row decides whether an actor's call is executed again; its text ends up in the session's log. */
export const forActors: FrameRetention = { head: 'soon', text: 'soon', end: 'no more' };

export interface StreamTarget {
  surface: Surface;
  callId: string;
  /** Delivery number of the work item. */
  attempt: number;
  retention: FrameRetention;
  publish(frame: Uint8Array, retention: Retention): void;
  /** Called after the first content, which a reader waits for. */
  flush(): void;
}

/**
 * Publishes an answer, part by part, as the frames of one delivery. After a frame with the template a token travels as its text alone (ADR 30). Exactly one of
 * `finish` and `fail` is called, last.
 */
export class AnswerStream {
  readonly #target: StreamTarget;
  #head: AnswerHead;
  #writer: PartWriter;
  #seq = 0;
  #templateAtMs = Number.NEGATIVE_INFINITY;

  constructor(target: StreamTarget, head: AnswerHead) {
    this.#target = target;
    this.#head = head;
    this.#writer = target.surface.partWriter(head);
  }

  /** Called per candidate. */
  begin(head: AnswerHead): void {
    this.#head = head;
    this.#writer = this.#target.surface.partWriter(head);
  }

  /** Opens the stream; is no content. */
  debug(upstreamBody: unknown): void {
    const { callId, attempt, publish, retention } = this.#target;
    publish(sseFrame('open', callId, attempt, this.#next(), this.#writer.debug(upstreamBody)), retention.head);
  }

  /** One frame per batch. */
  parts(parts: readonly ProviderPart[]): void {
    const { callId, attempt, publish, retention, flush } = this.#target;
    const nowMs = performance.now();
    const isTemplateSent = nowMs - this.#templateAtMs < TEMPLATE_EVERY_MS;
    const text = isTemplateSent ? this.#writer.text(parts) : null;
    if (text !== null) {
      publish(textFrame(attempt, this.#next(), text), retention.text);
      return;
    }
    const events = this.#writer.parts(parts);
    if (events === '') return;
    const isFirst = this.#templateAtMs === Number.NEGATIVE_INFINITY;
    if (!isTemplateSent) this.#templateAtMs = nowMs;
    publish(sseFrame('content', callId, attempt, this.#next(), events), isTemplateSent ? retention.text : retention.head);
    if (isFirst) flush();
  }

  finish(answer: Answer, usage: Usage): void {
    const { callId, attempt, publish, retention } = this.#target;
    publish(sseFrame('done', callId, attempt, this.#next(), this.#writer.done(answer, usage)), retention.end);
  }

  fail(body: RouterErrorBody): void {
    const { callId, attempt, publish, retention, surface } = this.#target;
    const events = surface.errorEvent(body, this.#head);
    publish(errorFrame(callId, attempt, this.#next(), body.error.code, JSON.stringify(body), events), retention.end);
  }

  #next(): number {
    this.#seq += 1;
    return this.#seq;
  }
}
