import type { LocalTrace, TraceSummary } from '../contracts/local-trace.ts';
import { newSpanId, traceContextOf, traceparentOf } from './trace-context.ts';

/** Short texts, numbers and flags. No secrets; customer text only as `Tracing.content` allows. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer';

/** Messaging spans have their own scope, so that viewers of model calls can filter them out. */
export type SpanScope = 'switchyard' | 'switchyard.messaging' | 'switchyard.gen_ai';

export interface SpanOptions {
  kind: SpanKind;
  /** `traceparent` of the parent span. Null starts a trace. */
  parent: string | null;
  /** 16 hex; absent: a new one. Given where other processes derive it (`spanIdOf`). */
  spanId?: string;
  /** 32 hex, for a new trace with an id that must be known even when nothing is recorded. */
  traceId?: string;
  /** `traceparent`s of related spans, such as an earlier try. */
  links?: readonly string[];
  attributes?: Attributes;
  /** Epoch milliseconds; absent: now. */
  startMs?: number;
  scope?: SpanScope;
}

/** A fact with its time, within a span. */
export interface SpanEvent {
  name: string;
  /** Epoch milliseconds. */
  atMs: number;
  attributes?: Attributes;
}

/** Recorded only when it is ended. */
export interface Span {
  /** Carried by its messages and requests. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** @param errorType a stable code, never a message; null: no error */
  end(errorType?: string | null): void;
}

/** A finished span with known ids. */
export interface FinishedSpan extends Omit<SpanOptions, 'startMs' | 'parent'> {
  name: string;
  parent: string | null;
  startMs: number;
  endMs: number;
  errorType?: string | null;
  events?: readonly SpanEvent[];
}

/** Captured customer and model text: none, its structure, or the text. */
export type ContentCapture = 'off' | 'redacted' | 'full';

/** Traces that the process keeps in memory, to be shown. */
export interface TraceReader {
  /** @returns newest first */
  list(limit: number): TraceSummary[];
  /** Null: not kept, or no longer. */
  one(traceId: string): LocalTrace | null;
}

/** The tracing port. Recording never waits: spans beyond a bounded queue are dropped and counted. Never called per token. */
export interface Tracing {
  readonly content: ContentCapture;
  /** Absent and null: none are kept. */
  readonly local?: TraceReader | null;
  begin(name: string, options: SpanOptions): Span;
  record(span: FinishedSpan): void;
  /** The queue was full or an export failed. */
  readonly dropped: number;
  /** Flushes the queue within a time limit; later spans are not recorded. */
  stop(): Promise<void>;
}

/** Propagates each context unchanged. */
export const noTracing: Tracing = {
  content: 'off',
  begin: (_, { parent, traceId }) =>
    unrecordedSpan(parent ?? (traceId === undefined ? null : traceparentOf({ traceId, spanId: newSpanId(), isSampled: true }))),
  record() {},
  dropped: 0,
  async stop() {},
};

/** For what is not recorded: the parent's context, or a new one made on first use. */
export function unrecordedSpan(parent: string | null): Span {
  return new UnrecordedSpan(parent);
}

class UnrecordedSpan implements Span {
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
