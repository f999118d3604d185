import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from './log.ts';

/** About 1 KB each. At 1,000 a second this bridges the batch interval and a short outage. */
export const MAX_WAITING_SPANS = 8_192;
/** Only spans with captured content come near it: some 500 at their maximum. */
const MAX_WAITING_CHARS = 32 * 1_024 * 1_024;
const WARN_EVERY_MS = 60_000;

interface CountedOptions {
  log: Log;
  onDrop(count: number): void;
  maxWaitingSpans: number;
}

/** Wraps an exporter: bounds its queue, counts lost spans and logs them at intervals. */
export function countedExporter(exporter: SpanExporter, { log, onDrop, maxWaitingSpans }: CountedOptions) {
  let waiting = 0;
  let waitingChars = 0;
  let dropped = 0;
  let lastWarningAt = Number.NEGATIVE_INFINITY;
  /** @param error absent: the queue was full. Made only for a logged line, since spans may be dropped by the thousand. */
  const recordLoss = (count: number, error?: unknown) => {
    dropped += count;
    onDrop(count);
    if (performance.now() - lastWarningAt < WARN_EVERY_MS) return;
    lastWarningAt = performance.now();
    log.warn({ err: error ?? new Error('the queue of spans is full'), dropped }, 'spans could not be sent');
  };
  const leave = (spans: readonly ReadableSpan[]) => {
    waiting -= spans.length;
    for (const span of spans) waitingChars -= charsOf(span);
  };
  const counting: SpanExporter = {
    export(spans, done) {
      let isSettled = false;
      const settle: typeof done = ({ code, error }) => {
        if (isSettled) return;
        isSettled = true;
        leave(spans);
        if (code !== 0) recordLoss(spans.length, error ?? new Error('the collector rejected the batch'));
        // The library would log a failure again.
        done({ code: 0 });
      };
      try {
        exporter.export(spans, settle);
      } catch (error) {
        // Without a result the spans would stay in the queue.
        settle({ code: 1, error: error instanceof Error ? error : new Error('the exporter failed', { cause: error }) });
      }
    },
    shutdown: () => exporter.shutdown(),
  };
  return {
    exporter: counting,
    /** @returns false when the queue is full; counts the span as lost */
    enter(span: ReadableSpan): boolean {
      const chars = charsOf(span);
      if (waiting >= maxWaitingSpans || waitingChars + chars > MAX_WAITING_CHARS) {
        recordLoss(1);
        return false;
      }
      waiting += 1;
      waitingChars += chars;
      return true;
    },
    get dropped() {
      return dropped;
    },
  };
}

function charsOf({ attributes }: ReadableSpan): number {
  return Object.values(attributes).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}
