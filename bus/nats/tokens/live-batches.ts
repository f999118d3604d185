import { addresses } from '../../subjects.ts';
import { atTickEnd } from '../connection/tick-end.ts';

const RETAINED = headOf(addresses.tokens);
const LIVE = headOf(addresses.liveTokens);
/** In place of the call id. */
const BATCH = '_batch';
/** A batch of this size is sent before the end of the tick. */
const MAX_BATCH_BYTES = 64 * 1024;

/* On the wire, per frame: length of the call id (1 byte), call id, length of the frame (2 bytes, big-endian), frame. */
const ID_LENGTH_BYTES = 1;
const FRAME_LENGTH_BYTES = 2;

export interface LiveAddress {
  origin: string;
  callId: string;
}

interface Batch {
  callIds: string[];
  frames: Uint8Array[];
  sizeBytes: number;
}

/** Sends the live frames to one origin in one tick as one message: to this process, the broker and readers, a message costs many times a text token. */
export class LiveBatches {
  readonly #publish: (subject: string, batch: Uint8Array) => void;
  /** Of this tick, by origin (ADR 17). */
  #batches = new Map<string, Batch>();

  constructor(publish: (subject: string, batch: Uint8Array) => void) {
    this.#publish = publish;
  }

  /** @param frame at most 64 KiB, not modified afterwards */
  add({ origin, callId }: LiveAddress, frame: Uint8Array): void {
    let batch = this.#batches.get(origin);
    if (batch === undefined) {
      if (this.#batches.size === 0) atTickEnd(() => this.flush());
      batch = { callIds: [], frames: [], sizeBytes: 0 };
      this.#batches.set(origin, batch);
    }
    batch.callIds.push(callId);
    batch.frames.push(frame);
    batch.sizeBytes += ID_LENGTH_BYTES + callId.length + FRAME_LENGTH_BYTES + frame.byteLength;
    if (batch.sizeBytes >= MAX_BATCH_BYTES) this.flush();
  }

  /** Publishes what is batched. Called before anything else is published. */
  flush(): void {
    const batches = this.#batches;
    if (batches.size === 0) return;
    this.#batches = new Map();
    for (const [origin, batch] of batches) this.#publish(`${LIVE}${origin}.${BATCH}`, packed(batch));
  }
}

function packed({ callIds, frames, sizeBytes }: Batch): Uint8Array {
  const bytes = Buffer.allocUnsafe(sizeBytes);
  let at = 0;
  for (let index = 0; index < callIds.length; index += 1) {
    const [callId, frame] = [callIds[index] as string, frames[index] as Uint8Array];
    bytes[at] = callId.length;
    at += ID_LENGTH_BYTES;
    at += bytes.write(callId, at, 'latin1');
    bytes[at] = frame.byteLength >> 8;
    bytes[at + 1] = frame.byteLength;
    at += FRAME_LENGTH_BYTES;
    bytes.set(frame, at);
    at += frame.byteLength;
  }
  return bytes;
}

function headOf({ pattern }: { pattern: string }): string {
  return pattern.slice(0, pattern.indexOf('*'));
}

/** @param subject stored or live: `tok.<origin>.<call>`, `live.<origin>.<call>` */
export function liveAddressOf(subject: string): LiveAddress {
  const [, origin = '', callId = ''] = subject.split('.');
  return { origin, callId };
}

export function livePatternOf(origin: string): string {
  return `${LIVE}${origin}.*`;
}

/** Gets the stored subject in two parts, to make no string for frames without a reader. */
type FrameHandler = (retainedAt: string, callId: string, frame: Uint8Array) => void;

/** The frames of a live message, as views. Older workers send one frame per message. A truncated rest is dropped. */
export function eachFrameIn(subject: string, message: Uint8Array, each: FrameHandler): void {
  const { origin, callId } = liveAddressOf(subject);
  const retainedAt = `${RETAINED}${origin}.`;
  if (callId === BATCH) unpack(message, retainedAt, each);
  else each(retainedAt, callId, message);
}

function unpack(batch: Uint8Array, retainedAt: string, each: FrameHandler): void {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const idAt = at + ID_LENGTH_BYTES;
    const lengthAt = idAt + (bytes[at] as number);
    const begin = lengthAt + FRAME_LENGTH_BYTES;
    if (begin > bytes.length) return;
    const end = begin + (((bytes[lengthAt] as number) << 8) | (bytes[lengthAt + 1] as number));
    if (end > bytes.length) return;
    each(retainedAt, bytes.toString('latin1', idAt, lengthAt), batch.subarray(begin, end));
    at = end;
  }
}
