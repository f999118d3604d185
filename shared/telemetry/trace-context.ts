import { createHash } from 'node:crypto';
import { traceId as newTraceId, randomHex } from '../ids.ts';

/** Version, trace, parent, flags. Zeros name no trace and no parent, and the version ff is none (W3C Trace Context, 3.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const SPAN_ID_LETTERS = 16;

export interface TraceContext {
  /** 32 hex. */
  traceId: string;
  /** As it travels on. */
  traceparent: string;
}

/** What a W3C `traceparent` says. */
export interface SpanReference {
  traceId: string;
  /** 16 hex. */
  spanId: string;
  /** Whether the trace is recorded at all. */
  isSampled: boolean;
}

/** The caller's W3C trace context, or a new one when it sent none, or none that is one: whatever is done for a request has one trace. */
export function traceContextOf(traceparent: unknown): TraceContext {
  const traceId = typeof traceparent === 'string' ? traceIdIn(traceparent) : null;
  if (traceId !== null) return { traceId, traceparent: traceparent as string };
  const own = newTraceId();
  return { traceId: own, traceparent: traceparentOf({ traceId: own, spanId: newSpanId(), isSampled: true }) };
}

/** The trace that a stored context names; null when there is none. */
export function traceIdIn(traceparent: string | null): string | null {
  return spanReferenceIn(traceparent)?.traceId ?? null;
}

/** Null for what is no context. */
export function spanReferenceIn(traceparent: unknown): SpanReference | null {
  if (typeof traceparent !== 'string') return null;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentOf({ traceId, spanId, isSampled }: SpanReference): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}

export function newSpanId(): string {
  return randomHex(SPAN_ID_LETTERS / 2);
}

/**
 * The id of the span of something that has an id of its own. Whoever knows that one knows the span, so the beginning and the end of it may
 * be in different processes.
 */
export function spanIdOf(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, SPAN_ID_LETTERS);
}

/** The context of what has the id, below a parent; null without one. */
export function contextBelow(parent: string | null, id: string): string | null {
  const reference = spanReferenceIn(parent);
  return reference === null ? null : traceparentOf({ ...reference, spanId: spanIdOf(id) });
}
