import { randomBytes } from 'node:crypto';
import { traceId as newTraceId } from '../ids.ts';

/** Version, trace, parent, flags. Zeros name no trace and no parent, and the version ff is none (W3C Trace Context, 3.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

export interface TraceContext {
  /** 32 hex. */
  traceId: string;
  /** As it travels on. */
  traceparent: string;
}

/** The caller's W3C trace context, or a new one when it sent none, or none that is one: whatever is done for a request has one trace. */
export function traceContextOf(traceparent: unknown): TraceContext {
  const traceId = typeof traceparent === 'string' ? traceIdIn(traceparent) : null;
  if (traceId !== null) return { traceId, traceparent: traceparent as string };
  const own = newTraceId();
  return { traceId: own, traceparent: `00-${own}-${randomBytes(8).toString('hex')}-01` };
}

/** The trace that a stored context names; null when there is none. */
export function traceIdIn(traceparent: string | null): string | null {
  return (traceparent === null ? null : TRACEPARENT.exec(traceparent)?.[1]) ?? null;
}
