import type { OtelConfig } from '../config/otel-settings.ts';
import type { LocalTrace, TraceSpan, TraceSummary } from '../contracts/local-trace.ts';
import { keptAttributes } from './readable-span.ts';
import { type SpanReference, spanReferenceIn } from './trace-context.ts';
import type { Attributes, FinishedSpan, TraceReader } from './tracing.ts';

const MAX_BYTES = 32 * 1_024 * 1_024;
/** So that a long run leaves room for others. */
const MAX_BYTES_PER_TRACE = 2 * 1_024 * 1_024;
const MAX_SPANS_PER_TRACE = 2_000;
const MAX_LINKS = 16;
const MAX_EVENTS = 128;
/** Of a span beside its texts, and of each attribute: estimates, so that the bound holds roughly without a measurement per span. */
const SPAN_BYTES = 600;
const ATTRIBUTE_BYTES = 64;
const BYTES_PER_CHARACTER = 2;

interface KeptSpan {
  span: FinishedSpan;
  spanId: string;
}

interface KeptTrace {
  spans: KeptSpan[];
  bytes: number;
  omitted: number;
}

interface LocalTracesOptions {
  limits: OtelConfig['limits'];
  /** Of all traces. */
  maxBytes?: number;
}

/** The last traces of this process, in bounded memory: the trace whose last span is oldest goes first. */
export class LocalTraces implements TraceReader {
  readonly #limits: OtelConfig['limits'];
  readonly #maxBytes: number;
  /** By id, the one with the newest span last. */
  readonly #traces = new Map<string, KeptTrace>();
  #bytes = 0;

  constructor({ limits, maxBytes = MAX_BYTES }: LocalTracesOptions) {
    this.#limits = limits;
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(span: FinishedSpan, { traceId, spanId }: SpanReference): void {
    const kept = this.#bounded(span);
    const bytes = sizeOf(kept);
    const trace = this.#traces.get(traceId) ?? { spans: [], bytes: 0, omitted: 0 };
    if (trace.spans.length >= MAX_SPANS_PER_TRACE || trace.bytes + bytes > MAX_BYTES_PER_TRACE) trace.omitted += 1;
    else {
      trace.spans.push({ span: kept, spanId });
      trace.bytes += bytes;
      this.#bytes += bytes;
    }
    this.#traces.delete(traceId);
    this.#traces.set(traceId, trace);
    this.#evict();
  }

  /** @returns newest first */
  list(limit: number): TraceSummary[] {
    const newest = [...this.#traces].reverse().slice(0, limit);
    return newest.flatMap(([traceId, { spans }]) => (spans.length === 0 ? [] : [summaryOf(traceId, spans)]));
  }

  one(traceId: string): LocalTrace | null {
    const found = this.#traces.get(traceId);
    if (found === undefined) return null;
    const spans = [...found.spans].sort((one, other) => one.span.startMs - other.span.startMs);
    return { trace_id: traceId, spans: spans.map(shownSpan), omitted_spans: found.omitted };
  }

  #evict(): void {
    for (const [traceId, { bytes }] of this.#traces) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#traces.delete(traceId);
      this.#bytes -= bytes;
    }
  }

  #bounded(span: FinishedSpan): FinishedSpan {
    const { attributes = {}, events = [], links = [] } = span;
    const bounded = (all: Attributes) => keptAttributes(all, this.#limits);
    return {
      ...span,
      attributes: bounded(attributes),
      events: events.slice(0, MAX_EVENTS).map((event) => ({ ...event, attributes: bounded(event.attributes ?? {}) })),
      links: links.slice(0, MAX_LINKS),
    };
  }
}

function sizeOf({ name, attributes = {}, events = [] }: FinishedSpan): number {
  return events.reduce(
    (sum, event) => sum + attributeBytes(event.attributes ?? {}),
    SPAN_BYTES + name.length * BYTES_PER_CHARACTER + attributeBytes(attributes),
  );
}

function attributeBytes(attributes: Attributes): number {
  let bytes = 0;
  for (const value of Object.values(attributes)) {
    const characters = typeof value === 'string' ? value.length : typeof value === 'object' ? value.join('').length : 0;
    bytes += ATTRIBUTE_BYTES + characters * BYTES_PER_CHARACTER;
  }
  return bytes;
}

function summaryOf(traceId: string, spans: readonly KeptSpan[]): TraceSummary {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const byBegin = [...spans].sort((one, other) => one.span.startMs - other.span.startMs);
  const isRoot = ({ span }: KeptSpan) => !ids.has(spanReferenceIn(span.parent)?.spanId ?? '');
  const root = byBegin.find(isRoot) ?? byBegin[0];
  const startMs = Math.min(...spans.map(({ span }) => span.startMs));
  const endMs = Math.max(...spans.map(({ span }) => span.endMs));
  return {
    trace_id: traceId,
    name: root?.span.name ?? '',
    started_at: new Date(startMs).toISOString(),
    duration_ms: durationOf(startMs, endMs),
    spans: spans.length,
    error_type: byBegin.find(({ span }) => span.errorType != null)?.span.errorType ?? null,
  };
}

function shownSpan({ span, spanId }: KeptSpan): TraceSpan {
  const { name, kind, parent, startMs, endMs, errorType = null, scope = 'switchyard', attributes = {}, events = [], links = [] } = span;
  return {
    span_id: spanId,
    parent_span_id: spanReferenceIn(parent)?.spanId ?? null,
    name,
    kind,
    scope,
    started_at: new Date(startMs).toISOString(),
    duration_ms: durationOf(startMs, endMs),
    error_type: errorType,
    attributes: shown(attributes),
    events: events.map((event) => ({ name: event.name, at: new Date(event.atMs).toISOString(), attributes: shown(event.attributes ?? {}) })),
    links: links.flatMap((link) => {
      const reference = spanReferenceIn(link);
      return reference === null ? [] : [{ trace_id: reference.traceId, span_id: reference.spanId }];
    }),
  };
}

function shown(attributes: Attributes): TraceSpan['attributes'] {
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, typeof value === 'object' ? [...value] : value]])),
  );
}

/** With microseconds. */
function durationOf(startMs: number, endMs: number): number {
  return Math.round(Math.max(0, endMs - startMs) * 1_000) / 1_000;
}
