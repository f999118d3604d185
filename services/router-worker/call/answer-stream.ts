import type { TokenStream } from '#bus/bus.ts';
import { errorFrame, sseFrame, templateFrame, textFrame } from '#bus/messages/frame.ts';
import type { RouterErrorBody, Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import type { RouterMetadata } from '#shared/contracts/router/router-metadata.ts';
import { type Answer, emptyAnswer } from '#shared/surfaces/answer.ts';
import type { AnswerHead, PartWriter, Surface } from '#shared/surfaces/surface.ts';
import { writeExactly } from '../providers/exact-numbers.ts';

/** Frames are kept for two minutes; a reader that resumes later needs the template, too. */
const STATE_EVERY_MS = 30_000;

export interface StreamTarget {
  surface: Surface;
  callId: string;
  /** Of its delivery, in ids of frames. */
  attempt: number;
  /** Whether the answer will be in a session's log. */
  isLogged: boolean;
  /** False for a call of the release before, whose readers find the template in the first chunk. */
  statesTemplate: boolean;
  tokens: Pick<TokenStream, 'publish'>;
  framesAt: string;
}

/**
 * Publishes an answer, part by part, as the frames of one delivery. Once a frame has stated the template, a token travels as its text alone (ADR 43). Exactly
 * one of `finish` and `fail` is called, last.
 */
export class AnswerStream {
  readonly #target: StreamTarget;
  /** Of the next frame. */
  readonly #address: { callId: string; attempt: number; seq: number; isLogged: boolean };
  #head: AnswerHead;
  #writer: PartWriter;
  #statedAtMs = Number.NEGATIVE_INFINITY;

  constructor(target: StreamTarget, head: AnswerHead, answer: Answer = emptyAnswer(false)) {
    const { callId, attempt, isLogged, surface } = target;
    this.#target = target;
    this.#address = { callId, attempt, seq: 1, isLogged };
    this.#head = head;
    this.#writer = surface.partWriter(head, answer);
  }

  /** Called per candidate. @param answer to which its parts are added */
  begin(head: AnswerHead, answer: Answer): void {
    this.#head = head;
    this.#writer = this.#target.surface.partWriter(head, answer);
  }

  /** Opens the stream; is no content. Numbers are shown as they are sent. */
  debug(upstreamBody: unknown): void {
    this.#publish(
      sseFrame(
        'o',
        this.#address,
        writeExactly(() => this.#writer.debug(upstreamBody)),
      ),
    );
  }

  /** One frame per batch. */
  parts(parts: readonly ProviderPart[]): void {
    const nowMs = performance.now();
    const isStated = nowMs - this.#statedAtMs < STATE_EVERY_MS;
    const text = isStated ? this.#writer.text(parts) : null;
    if (text !== null) {
      this.#publish(textFrame(this.#address, text));
      return;
    }
    const events = this.#writer.parts(parts);
    if (events === '') return;
    if (!isStated) this.#statedAtMs = nowMs;
    this.#publish(this.#contentFrame(events, isStated));
  }

  finish(answer: Answer, usage: Usage, metadata?: RouterMetadata): void {
    this.#publish(sseFrame('d', this.#address, this.#writer.done(answer, usage, metadata)));
  }

  /** @param usage null: nothing came of the call */
  fail(body: RouterErrorBody, usage: Usage | null = null): void {
    const events = this.#writer.failed?.(body, usage) ?? this.#target.surface.errorEvent(body, this.#head, 0);
    this.#publish(errorFrame(this.#address, body.error.code, JSON.stringify(body), events));
  }

  #contentFrame(events: string, isStated: boolean): Uint8Array {
    if (!this.#target.statesTemplate) return sseFrame('c', this.#address, events);
    return isStated ? sseFrame('m', this.#address, events) : templateFrame(this.#address, this.#writer.template, events);
  }

  #publish(frame: Uint8Array): void {
    this.#address.seq += 1;
    this.#target.tokens.publish(this.#target.framesAt, frame);
  }
}
