import { randomBytes } from 'node:crypto';
import type { TokenStream } from './bus.ts';

/** A little under the limit for bodies (large-bodies.ts), to leave space for the header. */
const MAX_PART_BYTES = 512 * 1024 - 256;
/** A whole answer with images. A larger frame is dropped, as if it were lost. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024;
/** Bytes of incomplete frames per subscription. Past it the oldest frame is dropped, as if it were lost. */
const MAX_WAITING_BYTES = 128 * 1024 * 1024;

/*
 * On the wire:  a zero byte, `<frame> <part> <parts>\n` (8 hex digits, numbers from 1), bytes     a part
 *               anything else                                                                    a whole frame
 * A whole frame that begins with a zero byte or with DRIVER_PREFIX is sent as its own only part, so the first byte is unambiguous.
 */
const PART_PREFIX = 0;
/** Reserved for what drivers exchange between themselves. */
export const DRIVER_PREFIX = 1;
const NEWLINE = 10;
/** Prefix, frame id, two numbers of up to 6 digits, separators. */
const MAX_HEAD_BYTES = 32;
const HEAD = /^([0-9a-f]{8}) (\d{1,6}) (\d{1,6})$/;

/** Lets tokens carry frames of any size, in parts. A lost part loses its frame. */
export function withLargeFrames(inner: TokenStream): TokenStream {
  return {
    publish(subject, frame) {
      if (frame.byteLength <= MAX_PART_BYTES && frame[0] !== PART_PREFIX && frame[0] !== DRIVER_PREFIX) inner.publish(subject, frame);
      else for (const part of cutFrame(frame)) inner.publish(subject, part);
    },
    subscribe(pattern, handler) {
      const joiner = new FrameJoiner();
      return inner.subscribe(pattern, (subject, bytes) => {
        const frame = bytes[0] === PART_PREFIX ? joiner.add(subject, bytes) : bytes;
        if (frame !== null) handler(subject, frame);
      });
    },
    async replay(subject, upTo) {
      const retained = await inner.replay(subject, upTo);
      if (!retained.some((bytes) => bytes[0] === PART_PREFIX)) return retained;
      const joiner = new FrameJoiner();
      return retained.flatMap((bytes) => (bytes[0] === PART_PREFIX ? (joiner.add(subject, bytes) ?? []) : [bytes]));
    },
  };
}

function cutFrame(frame: Uint8Array): Uint8Array[] {
  if (frame.byteLength > MAX_FRAME_BYTES) return [];
  const name = randomBytes(4).toString('hex');
  const count = Math.max(1, Math.ceil(frame.byteLength / MAX_PART_BYTES));
  return Array.from({ length: count }, (_, index) => {
    const head = Buffer.from(`\0${name} ${index + 1} ${count}\n`, 'latin1');
    return Buffer.concat([head, frame.subarray(index * MAX_PART_BYTES, (index + 1) * MAX_PART_BYTES)]);
  });
}

interface Waiting {
  parts: Uint8Array[];
  sizeBytes: number;
}

/** Reassembles frames. A frame's parts come in order, from one worker; frames of two workers may interleave. */
class FrameJoiner {
  /** By subject and frame id, oldest first. */
  readonly #waiting = new Map<string, Waiting>();
  #waitingBytes = 0;

  /** @returns the frame that this part completes, or null */
  add(subject: string, bytes: Uint8Array): Uint8Array | null {
    const headEnd = bytes.subarray(0, MAX_HEAD_BYTES).indexOf(NEWLINE);
    const [, name, part, parts] = HEAD.exec(Buffer.from(bytes.subarray(1, Math.max(1, headEnd))).toString('latin1')) ?? [];
    if (name === undefined) return null;
    const [index, count] = [Number(part), Number(parts)];
    const rest = bytes.subarray(headEnd + 1);
    if (count === 1) return rest;
    const key = `${subject} ${name}`;
    const waiting = this.#waiting.get(key) ?? { parts: [], sizeBytes: 0 };
    // A part is missing.
    if (index !== waiting.parts.length + 1) {
      this.#discard(key);
      return null;
    }
    waiting.parts.push(rest);
    waiting.sizeBytes += rest.byteLength;
    this.#waiting.set(key, waiting);
    this.#waitingBytes += rest.byteLength;
    if (index === count) {
      this.#discard(key);
      return Buffer.concat(waiting.parts);
    }
    for (const oldest of this.#waiting.keys()) {
      if (this.#waitingBytes <= MAX_WAITING_BYTES) break;
      this.#discard(oldest);
    }
    return null;
  }

  #discard(key: string): void {
    this.#waitingBytes -= this.#waiting.get(key)?.sizeBytes ?? 0;
    this.#waiting.delete(key);
  }
}
