import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Log } from './log.ts';

/** Spans that wait to be sent. At a thousand a second it bridges the batch interval and a short outage; one takes about a kilobyte. */
export const MAX_WAITING_SPANS = 8_192;
/** Texts of waiting spans. Only those that show what was said come near it: some five hundred at their largest. */
const MAX_WAITING_CHARS = 32 * 1_024 * 1_024;
/** Between two lines that say that spans can't be sent. */
const WARN_EVERY_MS = 60_000;

interface CountedOptions {
  log: Log;
  onDrop(count: number): void;
  maxWaitingSpans: number;
}

/** Counts what waits and what is lost on its way out. */
export function countedExporter(exporter: SpanExporter, { log, onDrop, maxWaitingSpans }: CountedOptions) {
  let waiting = 0;
  let waitingChars = 0;
  let dropped = 0;
  let lastWarningAt = Number.NEGATIVE_INFINITY;
  /** @param error absent: there was no room. Made for the line alone: spans that are dropped by the thousand must cost nothing. */
  const lose = (count: number, error?: unknown) => {
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
        if (code !== 0) lose(spans.length, error ?? new Error('the collector took nothing'));
        // Told already, and counted: a failure would only make the library tell it again.
        done({ code: 0 });
      };
      try {
        exporter.export(spans, settle);
      } catch (error) {
        // Without an answer they would keep their places for ever.
        settle({ code: 1, error: error instanceof Error ? error : new Error('the exporter failed', { cause: error }) });
      }
    },
    shutdown: () => exporter.shutdown(),
  };
  return {
    exporter: counting,
    /** @returns whether there is room for one more */
    enter(span: ReadableSpan): boolean {
      const chars = charsOf(span);
      if (waiting >= maxWaitingSpans || waitingChars + chars > MAX_WAITING_CHARS) {
        lose(1);
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
