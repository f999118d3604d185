import type { TracingConfig } from '../config/tracing-settings.ts';
import { traceId as newTraceId } from '../ids.ts';
import { newSpanId, type SpanReference, spanReferenceIn, traceparentOf } from './trace-context.ts';
import type { FinishedSpan, SpanOptions } from './tracing.ts';

type Sampling = Pick<TracingConfig, 'sampleRatio'> & { otel: Pick<TracingConfig['otel'], 'followsParent'> };

/** Where a span stands, and whether it is recorded: as its parent is, unless the sampler says otherwise; a trace that begins here by the ratio. */
export function spanReferenceOf({ parent, spanId = newSpanId(), traceId }: SpanOptions | FinishedSpan, { sampleRatio, otel }: Sampling): SpanReference {
  const above = spanReferenceIn(parent);
  if (above !== null) return { traceId: above.traceId, spanId, isSampled: otel.followsParent ? above.isSampled : isChosen(above.traceId, sampleRatio) };
  const own = traceId ?? newTraceId();
  return { traceId: own, spanId, isSampled: isChosen(own, sampleRatio) };
}

/** What goes on from a span that is not recorded: its parent, marked as not recorded, since those below must not stand under a gap. */
export function unsampled(parent: string): string {
  const above = spanReferenceIn(parent);
  return above?.isSampled === true ? traceparentOf({ ...above, isSampled: false }) : parent;
}

/** The same trace is chosen, or not, wherever it is asked. The last 7 bytes are what W3C calls random. */
function isChosen(traceId: string, ratio: number): boolean {
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) / 16 ** 13 < ratio;
}
