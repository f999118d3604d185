import type { TracingConfig } from '../config/tracing-settings.ts';
import { traceId as newTraceId } from '../ids.ts';
import { newSpanId, type SpanReference, spanReferenceIn, traceparentOf } from './trace-context.ts';
import type { FinishedSpan, SpanOptions } from './tracing.ts';

type Sampling = Pick<TracingConfig, 'sampleRatio'> & { otel: Pick<TracingConfig['otel'], 'followsParent'> };

/** The ids of a span, and whether it is recorded: like its parent, unless the sampler ignores parents; a new trace by the ratio. */
export function spanReferenceOf({ parent, spanId = newSpanId(), traceId }: SpanOptions | FinishedSpan, { sampleRatio, otel }: Sampling): SpanReference {
  const above = spanReferenceIn(parent);
  if (above !== null) return { traceId: above.traceId, spanId, isSampled: otel.followsParent ? above.isSampled : isChosen(above.traceId, sampleRatio) };
  const own = traceId ?? newTraceId();
  return { traceId: own, spanId, isSampled: isChosen(own, sampleRatio) };
}

/** The context passed on from an unrecorded span: its parent's, marked as not sampled, so that no child refers to a missing span. */
export function unsampled(parent: string): string {
  const above = spanReferenceIn(parent);
  return above?.isSampled === true ? traceparentOf({ ...above, isSampled: false }) : parent;
}

/** Deterministic, so that all processes agree. The last 7 bytes are random by the W3C specification. */
function isChosen(traceId: string, ratio: number): boolean {
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) / 16 ** 13 < ratio;
}
