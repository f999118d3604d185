import { RETAINED_WITHIN_MS } from '../bus.ts';
import { DRIVER_PREFIX } from '../large-frames.ts';
import { type LiveAddress, liveAddressOf } from './live-batches.ts';

/** A bundle is begun anew after this; the rest is for the broker, and for a process that is busy. */
const BATCHED_MS = RETAINED_WITHIN_MS / 2;
/** How exactly `BATCHED_MS` is held: all frames of a moment at once would hold up those that are live. */
const TICK_MS = 50;
/** A larger frame is worth a message of its own. */
export const MAX_BATCHED_BYTES = 4 * 1024;
/** A bundle that has grown to this is kept at once. */
const MAX_BATCH_BYTES = 32 * 1024;
/** For half a second of an answer of 50 tokens a second, each sent as its text. */
const FIRST_BYTES = 1024;
/** Empty buffers of the first size that are used again. */
const MAX_FREE = 1_024;

/*
 * On the wire: DRIVERS_MARK, then of each frame its length (two bytes, the higher one first) and its bytes.
 */
const LENGTH_BYTES = 2;

interface ReplayBatch {
  live: LiveAddress;
  buffer: Buffer;
  /** Bytes of it in use. */
  size: number;
  sinceMs: number;
}

export interface ReplayBatchesDeps {
  /** While it is false bundles wait for what comes before them, and take up what their calls go on to say; what is too much is lost. */
  isUp(): boolean;
  /** Whether the broker keeps what it is sent. While it is false bundles wait, too, but for those that something else of their call follows. */
  isReady(): boolean;
  publish(subject: string, batch: Uint8Array): void;
}

/**
 * Keeps frames that are live already: those of one subject and half a second as one message, since what a message costs the broker is
 * many times what a token of text does. Frames are copied, so that nothing small lives long enough to be moved by the collector.
 */
export class ReplayBatches {
  readonly #deps: ReplayBatchesDeps;
  /** By subject, the one that was begun first at the front. */
  readonly #batches = new Map<string, ReplayBatch>();
  readonly #free: Buffer[] = [];
  #tick: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(deps: ReplayBatchesDeps) {
    this.#deps = deps;
  }

  /** @param frame of `MAX_BATCHED_BYTES` at most @returns where it is live */
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

  /** Nothing more is kept of a subject. @returns where its frames are live */
  drop(subject: string): LiveAddress {
    const batch = this.#batches.get(subject);
    if (batch === undefined) return liveAddressOf(subject);
    this.#batches.delete(subject);
    this.#reuse(batch);
    return batch.live;
  }

  /** Keeps what there is of one subject, before anything else of it is kept. */
  flush(subject: string): void {
    const batch = this.#batches.get(subject);
    if (batch !== undefined && this.#deps.isUp()) this.#end(subject, batch);
  }

  #end(subject: string, batch: ReplayBatch): void {
    this.#batches.delete(subject);
    // A copy: the buffer is used again, and most of it is empty.
    this.#deps.publish(subject, Buffer.from(batch.buffer.subarray(0, batch.size)));
    this.#reuse(batch);
  }

  #reuse({ buffer }: ReplayBatch): void {
    if (buffer.length === FIRST_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer);
  }

  /** Keeps all that there is, and nothing by itself from now on. */
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

/** The frames of a bundle, as views into it. What was cut off is left out, as if it were lost. */
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
