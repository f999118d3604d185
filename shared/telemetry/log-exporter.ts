import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from './log.ts';

const MS_PER_SECOND = 1_000;
const NANOS_PER_MS = 1_000_000;
const SUCCESS = 0;

/** Writes each span as one log line. The library's console exporter writes several lines, and blocks when stdout is a pipe. */
export function logExporter(log: Log): SpanExporter {
  return {
    export(spans, done) {
      for (const span of spans) log.info({ span: fieldsOf(span) }, `span ${span.name}`);
      done({ code: SUCCESS });
    },
    async shutdown() {},
  };
}

function fieldsOf({ kind, spanContext, parentSpanContext, startTime, duration, status, attributes, events, resource }: ReadableSpan) {
  const { traceId, spanId } = spanContext();
  return {
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: parentSpanContext?.spanId ?? null,
    kind,
    start_ms: startTime[0] * MS_PER_SECOND + Math.floor(startTime[1] / NANOS_PER_MS),
    duration_ms: duration[0] * MS_PER_SECOND + duration[1] / NANOS_PER_MS,
    status: status.code,
    attributes,
    ...(events.length > 0 && { events: events.map(({ name, attributes: of }) => ({ name, attributes: of })) }),
    service: resource.attributes['service.name'],
  };
}
