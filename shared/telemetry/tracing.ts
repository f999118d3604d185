import { newSpanId, traceContextOf, traceparentOf } from './trace-context.ts';

/** Of a span's facts: short texts, numbers and flags. No secret, and no text of a customer but through `Tracing.content`. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer';

/** Spans of messages have a scope of their own, so that viewers of model calls can leave them out. */
export type SpanScope = 'switchyard' | 'switchyard.messaging' | 'switchyard.gen_ai';

export interface SpanOptions {
  kind: SpanKind;
  /** W3C `traceparent` of the span above. Null begins a trace. */
  parent: string | null;
  /** 16 hex; absent: a new one. Given where others know the span by the id of what it is of (`spanIdOf`). */
  spanId?: string;
  /** 32 hex, for a span that begins a trace whose id has to be known also where nothing is recorded. */
  traceId?: string;
  /** `traceparent`s of spans that belong to it and are not above it, such as an earlier try. */
  links?: readonly string[];
  attributes?: Attributes;
  /** Epoch milliseconds; absent: now. */
  startMs?: number;
  scope?: SpanScope;
}

/** A span in the making. Nothing is kept of one that is never ended. */
export interface Span {
  /** The context of what it does: goes into messages and headers. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** @param errorType a stable code when it failed, never a message */
  end(errorType?: string | null): void;
}

/** A span that is over, with ids that are known to all. */
export interface FinishedSpan extends Omit<SpanOptions, 'startMs' | 'parent'> {
  name: string;
  parent: string | null;
  startMs: number;
  endMs: number;
  errorType?: string | null;
}

/** How much of what customers and models say is shown: nothing, its outline, or its text. */
export type ContentCapture = 'off' | 'redacted' | 'full';

/**
 * Where spans go. Recording costs a push into a bounded queue, never a wait: what does not fit is dropped and counted. Nothing here is
 * called once per token.
 */
export interface Tracing {
  readonly content: ContentCapture;
  begin(name: string, options: SpanOptions): Span;
  record(span: FinishedSpan): void;
  /** Spans that were lost since the start: the queue was full, or nobody took them. */
  readonly dropped: number;
  /** Sends what waits, for as long as that may take, and records nothing any more. */
  stop(): Promise<void>;
}

/** Records nothing and hands every context on as it came. */
export const noTracing: Tracing = {
  content: 'off',
  begin: (_, { parent, traceId }) =>
    spanThatHandsOn(parent ?? (traceId === undefined ? null : traceparentOf({ traceId, spanId: newSpanId(), isSampled: true }))),
  record() {},
  dropped: 0,
  async stop() {},
};

/** For what is not recorded: the span above takes its place. Without one, a context is made for whoever asks for it. */
export function spanThatHandsOn(parent: string | null): Span {
  return new HandedOn(parent);
}

class HandedOn implements Span {
  #context: string | null;

  constructor(parent: string | null) {
    this.#context = parent;
  }

  get traceparent(): string {
    this.#context ??= traceContextOf(null).traceparent;
    return this.#context;
  }

  set(): void {}

  end(): void {}
}
