import { newSpanId, spanReferenceIn, traceparentOf } from '../trace-context.ts';
import type { ContentCapture, FinishedSpan, Tracing } from '../tracing.ts';

/** An ended span. */
export interface RecordedSpan extends FinishedSpan {
  traceparent: string;
}

/** A `Tracing` that collects ended spans, for tests. */
export function recordingTracing(content: ContentCapture = 'off'): Tracing & { spans: RecordedSpan[] } {
  const spans: RecordedSpan[] = [];
  const contextOf = ({ parent, spanId = newSpanId(), traceId }: Pick<FinishedSpan, 'parent' | 'spanId' | 'traceId'>) =>
    traceparentOf({ traceId: traceId ?? spanReferenceIn(parent)?.traceId ?? 'e'.repeat(32), spanId, isSampled: true });
  return {
    content,
    spans,
    dropped: 0,
    begin(name, options) {
      const traceparent = contextOf(options);
      const startMs = options.startMs ?? Date.now();
      let { attributes = {} } = options;
      return {
        traceparent,
        set: (more) => {
          attributes = { ...attributes, ...more };
        },
        end: (errorType = null) => void spans.push({ ...options, name, attributes, startMs, endMs: Date.now(), errorType, traceparent }),
      };
    },
    record: (span) => void spans.push({ ...span, traceparent: contextOf(span) }),
    async stop() {},
  };
}
