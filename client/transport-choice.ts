import type { AgentError } from './agent-error.ts';
import type { Timings } from './timings.ts';

export type TransportKind = 'stream' | 'polling';

/** Streams that fail before their first byte, until polls are used. */
const STREAM_TRIES = 2;

/** A stream, or polls for some time when streams do not come through. */
export class TransportChoice {
  readonly #onlyPolling: boolean;
  readonly #timings: Timings;
  #failedStreams = 0;
  #pollForMs: number;
  #untilMs = Number.POSITIVE_INFINITY;

  constructor(onlyPolling: boolean, timings: Timings) {
    this.#onlyPolling = onlyPolling;
    this.#timings = timings;
    this.#pollForMs = timings.streamAgainMs;
  }

  /** When polls end and a stream is tried again, by `performance.now()`. */
  get untilMs(): number {
    return this.#untilMs;
  }

  next(): TransportKind {
    if (this.#onlyPolling) return 'polling';
    if (this.#failedStreams < STREAM_TRIES) return 'stream';
    this.#untilMs = performance.now() + this.#pollForMs;
    this.#pollForMs = Math.min(this.#pollForMs * 2, this.#timings.maxStreamAgainMs);
    return 'polling';
  }

  onOpen(kind: TransportKind): void {
    if (kind === 'polling') return;
    this.#failedStreams = 0;
    this.#pollForMs = this.#timings.streamAgainMs;
  }

  onEnd(kind: TransportKind, { wasOpen, error }: { wasOpen: boolean; error: AgentError | null }): void {
    // After polls one stream is tried, and if it fails polls are next.
    if (kind === 'polling') this.#failedStreams = STREAM_TRIES - 1;
    else if (!wasOpen) this.#failedStreams += error?.code === 'client.no_stream' ? STREAM_TRIES : 1;
  }
}
