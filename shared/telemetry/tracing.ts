import { newSpanId, traceContextOf, traceparentOf } from './trace-context.ts';

/** Span attributes: short texts, numbers and flags. No secrets, and customer text only as `Tracing.content` allows. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer';

/** Messaging spans have a scope of their own, so that viewers of model calls can filter them out. */
export type SpanScope = 'switchyard' | 'switchyard.messaging' | 'switchyard.gen_ai';

export interface SpanOptions {
  kind: SpanKind;
  /** W3C `traceparent` of the parent span. Null starts a trace. */
  parent: string | null;
  /** 16 hex; absent: a new one. Given where other processes derive the span id from a domain id (`spanIdOf`). */
  spanId?: string;
  /** 32 hex, for a new trace, where its id must be known even when nothing is recorded. */
  traceId?: string;
  /** `traceparent`s of related spans that are not ancestors, such as an earlier try. */
  links?: readonly string[];
  attributes?: Attributes;
  /** Epoch milliseconds; absent: now. */
  startMs?: number;
  scope?: SpanScope;
}

/** A span in progress. It is recorded only when it is ended. */
export interface Span {
  /** The context that its messages and requests carry. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** @param errorType a stable error code, never a message; null: no error */
  end(errorType?: string | null): void;
}

/** A finished span with known ids. */
export interface FinishedSpan extends Omit<SpanOptions, 'startMs' | 'parent'> {
  name: string;
  parent: string | null;
  startMs: number;
  endMs: number;
  errorType?: string | null;
}

/** Capture of customer and model text: none, its structure, or the text. */
export type ContentCapture = 'off' | 'redacted' | 'full';

/** The tracing port. Recording pushes into a bounded queue and never waits: spans beyond it are dropped and counted. Never called per token. */
export interface Tracing {
  readonly content: ContentCapture;
  begin(name: string, options: SpanOptions): Span;
  record(span: FinishedSpan): void;
  /** Spans lost since the start: the queue was full or an export failed. */
  readonly dropped: number;
  /** Flushes the queue within a time limit; later spans are not recorded. */
  stop(): Promise<void>;
}

/** Records nothing and propagates each context unchanged. */
export const noTracing: Tracing = {
  content: 'off',
  begin: (_, { parent, traceId }) =>
    spanThatHandsOn(parent ?? (traceId === undefined ? null : traceparentOf({ traceId, spanId: newSpanId(), isSampled: true }))),
  record() {},
  dropped: 0,
  async stop() {},
};

/** For what is not recorded: its context is the parent's, or a new one made on first use. */
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
