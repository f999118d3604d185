import { DRIVER_PREFIX } from '../../large-frames.ts';
import { RETAINED_WITHIN_MS } from '../../messages/retention.ts';
import { type LiveAddress, liveAddressOf } from './live-batches.ts';

/** Age at which a batch is published; the rest is for the broker and a busy process. */
const BATCHED_MS = RETAINED_WITHIN_MS / 2;
/** Resolution of `BATCHED_MS`: all batches at once would delay live frames. */
const TICK_MS = 50;
/** Larger frames are messages of their own. */
export const MAX_BATCHED_BYTES = 4 * 1024;
/** A batch of this size is published at once. */
const MAX_BATCH_BYTES = 32 * 1024;
/** Initial buffer: half a second at 50 text frames a second. */
const FIRST_BYTES = 1024;
/** Buffers on the free list. */
const MAX_FREE = 1_024;

/* On the wire: DRIVER_PREFIX, then per frame its length (2 bytes, big-endian) and its bytes. */
const LENGTH_BYTES = 2;

interface ReplayBatch {
  live: LiveAddress;
  buffer: Buffer;
  /** Bytes in use. */
  size: number;
  sinceMs: number;
}

export interface ReplayBatchesDeps {
  /** While false, `flush` does nothing and batches go on collecting; a full one is lost. */
  isUp(): boolean;
  /** The broker stores what it is sent. While false, only flushed or full batches are published. */
  isReady(): boolean;
  publish(subject: string, batch: Uint8Array): void;
}

/**
 * Stores live frames, those of a subject and half a second as one message: a message costs the broker many times what a text token does. Frames are copied,
 * so that small objects don't live long enough for the garbage collector to move them.
 */
export class ReplayBatches {
  readonly #deps: ReplayBatchesDeps;
  /** By subject, oldest first. */
  readonly #batches = new Map<string, ReplayBatch>();
  readonly #free: Buffer[] = [];
  #tick: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(deps: ReplayBatchesDeps) {
    this.#deps = deps;
  }

  /** @param frame at most `MAX_BATCHED_BYTES` @returns its live address */
  add(subject: string, frame: Uint8Array): LiveAddress {
    if (this.#closed) return liveAddressOf(subject);
    let batch = this.#batches.get(subject);
    if (batch !== undefined && batch.size + LENGTH_BYTES + frame.byteLength > MAX_BATCH_BYTES) {
      this.#end(subject, batch);
      batch = undefined;
    }
    batch ??= this.#begin(subject);
    append(batch, frame);
    return batch.live;
  }

  /** Discards a subject's batch. @returns its live address */
  drop(subject: string): LiveAddress {
    const batch = this.#batches.get(subject);
    if (batch === undefined) return liveAddressOf(subject);
    this.#batches.delete(subject);
    this.#reuse(batch);
    return batch.live;
  }

  /** Publishes a subject's batch, before anything else is stored there. */
  flush(subject: string): void {
    const batch = this.#batches.get(subject);
    if (batch !== undefined && this.#deps.isUp()) this.#end(subject, batch);
  }

  #end(subject: string, batch: ReplayBatch): void {
    this.#batches.delete(subject);
    // A copy: the buffer is reused, and mostly empty.
    this.#deps.publish(subject, Buffer.from(batch.buffer.subarray(0, batch.size)));
    this.#reuse(batch);
  }

  #reuse({ buffer }: ReplayBatch): void {
    if (buffer.length === FIRST_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer);
  }

  /** Publishes all batches; later frames are not stored. */
  close(): void {
    this.#closed = true;
    for (const [subject, batch] of this.#batches) this.#end(subject, batch);
    if (this.#tick !== null) clearInterval(this.#tick);
    this.#tick = null;
  }

  #begin(subject: string): ReplayBatch {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES);
    buffer[0] = DRIVER_PREFIX;
    const batch = { live: liveAddressOf(subject), buffer, size: 1, sinceMs: performance.now() };
    this.#batches.set(subject, batch);
    this.#tick ??= setInterval(() => this.#flushOld(), TICK_MS).unref();
    return batch;
  }

  #flushOld(): void {
    if (!this.#deps.isReady()) return;
    const oldMs = performance.now() - BATCHED_MS;
    for (const [subject, batch] of this.#batches) {
      if (batch.sinceMs > oldMs) return;
      this.#end(subject, batch);
    }
    if (this.#tick !== null) clearInterval(this.#tick);
    this.#tick = null;
  }
}

function append(batch: ReplayBatch, frame: Uint8Array): void {
  const { size } = batch;
  const end = size + LENGTH_BYTES + frame.byteLength;
  if (end > batch.buffer.length) {
    const larger = Buffer.allocUnsafeSlow(Math.min(MAX_BATCH_BYTES, Math.max(end, batch.buffer.length * 2)));
    larger.set(batch.buffer.subarray(0, size));
    batch.buffer = larger;
  }
  batch.buffer[size] = frame.byteLength >> 8;
  batch.buffer[size + 1] = frame.byteLength;
  batch.buffer.set(frame, size + LENGTH_BYTES);
  batch.size = end;
}

export function isReplayBatch(message: Uint8Array): boolean {
  return message[0] === DRIVER_PREFIX;
}

/** Views, not copies. A truncated rest is dropped. */
export function framesIn(batch: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 1; at + LENGTH_BYTES <= batch.byteLength; ) {
    const begin = at + LENGTH_BYTES;
    const end = begin + (((batch[at] as number) << 8) | (batch[at + 1] as number));
    if (end > batch.byteLength) break;
    frames.push(batch.subarray(begin, end));
    at = end;
  }
  return frames;
}
