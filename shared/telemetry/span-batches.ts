import type { Log } from './log.ts';
import type { SpanReference } from './trace-context.ts';
import type { FinishedSpan } from './tracing.ts';

/** About 1 KB each. At 1,000 a second this bridges the batch interval and a short outage. */
export const MAX_WAITING_SPANS = 8_192;
/** Only spans with captured content come near it: some 500 at their maximum. */
const MAX_WAITING_SIZE = 32 * 1_024 * 1_024;
const WARN_EVERY_MS = 60_000;

/** How an exporter takes spans. */
export interface BatchForm<Batch> {
  /** Adds a span to the open batch. @returns its size, in bytes or characters of its texts */
  add(span: FinishedSpan, reference: SpanReference): number;
  /** The open batch; the next one is empty. */
  take(): Batch;
}

/** Of OpenTelemetry's libraries. */
export interface BatchExporter<Batch> {
  /** @param done gets code 0 when the collector has accepted the batch */
  export(batch: Batch, done: (result: { code: number; error?: Error }) => void): void;
  shutdown(): Promise<void>;
}

interface BatchesOptions {
  log: Log;
  onDrop(count: number): void;
  maxWaitingSpans: number;
  batchSpans: number;
  delayMs: number;
  /** For an export; then the next one begins. */
  timeoutMs: number;
}

interface ClosedBatch<Batch> {
  batch: Batch;
  spans: number;
  size: number;
}

/** Collects spans in batches and sends one batch after the other, off the path of the work. Bounds what waits, counts lost spans and logs them at intervals. */
export class SpanBatches<Batch> {
  readonly #form: BatchForm<Batch>;
  readonly #exporter: BatchExporter<Batch>;
  readonly #options: BatchesOptions;
  /** Until the collector has answered. */
  #waitingSpans = 0;
  #waitingSize = 0;
  #openSpans = 0;
  #openSize = 0;
  #closed: ClosedBatch<Batch>[] = [];
  #isSending = false;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;
  #lastWarningAtMs = Number.NEGATIVE_INFINITY;

  constructor(form: BatchForm<Batch>, exporter: BatchExporter<Batch>, options: BatchesOptions) {
    this.#form = form;
    this.#exporter = exporter;
    this.#options = options;
  }

  get dropped(): number {
    return this.#dropped;
  }

  add(span: FinishedSpan, reference: SpanReference): void {
    const { maxWaitingSpans, batchSpans, delayMs } = this.#options;
    if (this.#waitingSpans >= maxWaitingSpans || this.#waitingSize >= MAX_WAITING_SIZE) {
      this.#recordLoss(1);
      return;
    }
    const size = this.#form.add(span, reference);
    this.#waitingSpans += 1;
    this.#waitingSize += size;
    this.#openSpans += 1;
    this.#openSize += size;
    if (this.#openSpans >= batchSpans) this.#sendOpen();
    else this.#timer ??= setTimeout(() => this.#sendOpen(), delayMs).unref();
  }

  /** Sends all that waits, and shuts the exporter down. */
  async stop(): Promise<void> {
    this.#close();
    await Promise.all(this.#closed.splice(0).map((batch) => this.#export(batch)));
    await this.#exporter.shutdown();
  }

  #sendOpen(): void {
    this.#close();
    if (!this.#isSending) void this.#send();
  }

  #close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#openSpans === 0) return;
    this.#closed.push({ batch: this.#form.take(), spans: this.#openSpans, size: this.#openSize });
    this.#openSpans = 0;
    this.#openSize = 0;
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    this.#isSending = true;
    for (let next = this.#closed.shift(); next !== undefined; next = this.#closed.shift()) await this.#export(next);
    this.#isSending = false;
  }

  /** Resolves with the collector's answer, or once its time is over. Until the answer the spans count as waiting. */
  #export({ batch, spans, size }: ClosedBatch<Batch>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.timeoutMs);
      let isSettled = false;
      const settle = ({ code, error }: { code: number; error?: Error }) => {
        if (isSettled) return;
        isSettled = true;
        clearTimeout(timer);
        this.#waitingSpans -= spans;
        this.#waitingSize -= size;
        if (code !== 0) this.#recordLoss(spans, error ?? new Error('the collector rejected the batch'));
        resolve();
      };
      try {
        this.#exporter.export(batch, settle);
      } catch (error) {
        // Without a result the spans would stay in the queue.
        settle({ code: 1, error: error instanceof Error ? error : new Error('the exporter failed', { cause: error }) });
      }
    });
  }

  /** @param error absent: the queue was full. Made only for a logged line, since spans may be dropped by the thousand. */
  #recordLoss(count: number, error?: Error): void {
    this.#dropped += count;
    this.#options.onDrop(count);
    if (performance.now() - this.#lastWarningAtMs < WARN_EVERY_MS) return;
    this.#lastWarningAtMs = performance.now();
    this.#options.log.warn({ err: error ?? new Error('the queue of spans is full'), dropped: this.#dropped }, 'spans could not be sent');
  }
}
