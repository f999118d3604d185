import { hash } from 'node:crypto';
import { traceId as newTraceId, randomHex } from '../ids.ts';

/** Version, trace, parent, flags. All zeros and version ff are invalid (W3C Trace Context, 3.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const SPAN_ID_LETTERS = 16;

/** The W3C trace context of a request. */
export interface TraceContext {
  /** 32 hex. */
  traceId: string;
  traceparent: string;
}

/** A parsed W3C `traceparent`. */
export interface SpanReference {
  traceId: string;
  /** 16 hex. */
  spanId: string;
  isSampled: boolean;
}

/** The caller's W3C trace context, or a new one when missing or invalid. */
export function traceContextOf(traceparent: unknown): TraceContext {
  const traceId = typeof traceparent === 'string' ? traceIdIn(traceparent) : null;
  if (traceId !== null) return { traceId, traceparent: traceparent as string };
  const own = newTraceId();
  return { traceId: own, traceparent: traceparentOf({ traceId: own, spanId: newSpanId(), isSampled: true }) };
}

/** Null without a valid context. */
export function traceIdIn(traceparent: string | null): string | null {
  return spanReferenceIn(traceparent)?.traceId ?? null;
}

/** Null when invalid. */
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

/** Derives a span id from a domain id, so that a span may begin and end in different processes. */
export function spanIdOf(id: string): string {
  return hash('sha256', id).slice(0, SPAN_ID_LETTERS);
}

/** The context of the span derived from `id` below `parent`; null without a valid parent. */
export function contextBelow(parent: string | null, id: string): string | null {
  const reference = spanReferenceIn(parent);
  return reference === null ? null : traceparentOf({ ...reference, spanId: spanIdOf(id) });
}
