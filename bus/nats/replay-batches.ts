import { KEPT_WITHIN_MS } from '../bus.ts';
import { DRIVERS_MARK } from '../large-frames.ts';
import { type LiveAddress, liveAddressOf } from './live-batches.ts';

/** A bundle is begun anew after this; the rest is for the broker, and for a process that is busy. */
const BUNDLED_MS = KEPT_WITHIN_MS / 2;
/** How exactly `BUNDLED_MS` is held: all frames of a moment at once would hold up those that are live. */
const TICK_MS = 50;
/** A larger frame is worth a message of its own. */
export const MAX_BUNDLED_BYTES = 4 * 1024;
/** A bundle that has grown to this is kept at once. */
const MAX_BUNDLE_BYTES = 32 * 1024;
/** For half a second of an answer of 50 tokens a second, each sent as its text. */
const FIRST_BYTES = 1024;
/** Empty buffers of the first size that are used again. */
const MAX_FREE = 1_024;

/*
 * On the wire: DRIVERS_MARK, then of each frame its length (two bytes, the higher one first) and its bytes.
 */
const LENGTH_BYTES = 2;

interface Bundle {
  live: LiveAddress;
  buffer: Buffer;
  /** Bytes of it in use. */
  size: number;
  sinceMs: number;
}

export interface BundlesDeps {
  /** While it is false bundles wait for what comes before them, and take up what their calls go on to say; what is too much is lost. */
  isUp(): boolean;
  /** Whether the broker keeps what it is sent. While it is false bundles wait, too, but for those that something else of their call follows. */
  isReady(): boolean;
  publish(subject: string, bundle: Uint8Array): void;
}

/**
 * Keeps frames that are live already: those of one subject and half a second as one message, since what a message costs the broker is
 * many times what a token of text does. Frames are copied, so that nothing small lives long enough to be moved by the collector.
 */
export class FrameBundles {
  readonly #deps: BundlesDeps;
  /** By subject, the one that was begun first at the front. */
  readonly #bundles = new Map<string, Bundle>();
  readonly #free: Buffer[] = [];
  #tick: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(deps: BundlesDeps) {
    this.#deps = deps;
  }

  /** @param frame of `MAX_BUNDLED_BYTES` at most @returns where it is live */
  add(subject: string, frame: Uint8Array): LiveAddress {
    if (this.#closed) return liveAddressOf(subject);
    let bundle = this.#bundles.get(subject);
    if (bundle !== undefined && bundle.size + LENGTH_BYTES + frame.byteLength > MAX_BUNDLE_BYTES) {
      this.#end(subject, bundle);
      bundle = undefined;
    }
    bundle ??= this.#begin(subject);
    append(bundle, frame);
    return bundle.live;
  }

  /** Nothing more is kept of a subject. @returns where its frames are live */
  drop(subject: string): LiveAddress {
    const bundle = this.#bundles.get(subject);
    if (bundle === undefined) return liveAddressOf(subject);
    this.#bundles.delete(subject);
    this.#reuse(bundle);
    return bundle.live;
  }

  /** Keeps what there is of one subject, before anything else of it is kept. */
  flush(subject: string): void {
    const bundle = this.#bundles.get(subject);
    if (bundle !== undefined && this.#deps.isUp()) this.#end(subject, bundle);
  }

  #end(subject: string, bundle: Bundle): void {
    this.#bundles.delete(subject);
    // A copy: the buffer is used again, and most of it is empty.
    this.#deps.publish(subject, Buffer.from(bundle.buffer.subarray(0, bundle.size)));
    this.#reuse(bundle);
  }

  #reuse({ buffer }: Bundle): void {
    if (buffer.length === FIRST_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer);
  }

  /** Keeps all that there is, and nothing by itself from now on. */
  close(): void {
    this.#closed = true;
    for (const [subject, bundle] of this.#bundles) this.#end(subject, bundle);
    if (this.#tick !== null) clearInterval(this.#tick);
    this.#tick = null;
  }

  #begin(subject: string): Bundle {
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(FIRST_BYTES);
    buffer[0] = DRIVERS_MARK;
    const bundle = { live: liveAddressOf(subject), buffer, size: 1, sinceMs: performance.now() };
    this.#bundles.set(subject, bundle);
    this.#tick ??= setInterval(() => this.#flushOld(), TICK_MS).unref();
    return bundle;
  }

  #flushOld(): void {
    if (!this.#deps.isReady()) return;
    const oldMs = performance.now() - BUNDLED_MS;
    for (const [subject, bundle] of this.#bundles) {
      if (bundle.sinceMs > oldMs) return;
      this.#end(subject, bundle);
    }
    if (this.#tick !== null) clearInterval(this.#tick);
    this.#tick = null;
  }
}

function append(bundle: Bundle, frame: Uint8Array): void {
  const { size } = bundle;
  const end = size + LENGTH_BYTES + frame.byteLength;
  if (end > bundle.buffer.length) {
    const larger = Buffer.allocUnsafeSlow(Math.min(MAX_BUNDLE_BYTES, Math.max(end, bundle.buffer.length * 2)));
    larger.set(bundle.buffer.subarray(0, size));
    bundle.buffer = larger;
  }
  bundle.buffer[size] = frame.byteLength >> 8;
  bundle.buffer[size + 1] = frame.byteLength;
  bundle.buffer.set(frame, size + LENGTH_BYTES);
  bundle.size = end;
}

export function isBundle(message: Uint8Array): boolean {
  return message[0] === DRIVERS_MARK;
}

/** The frames of a bundle, as views into it. What was cut off is left out, as if it were lost. */
export function framesIn(bundle: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 1; at + LENGTH_BYTES <= bundle.byteLength; ) {
    const begin = at + LENGTH_BYTES;
    const end = begin + (((bundle[at] as number) << 8) | (bundle[at + 1] as number));
    if (end > bundle.byteLength) break;
    frames.push(bundle.subarray(begin, end));
    at = end;
  }
  return frames;
}
