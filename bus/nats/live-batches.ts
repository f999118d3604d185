import { addresses } from '../subjects.ts';
import { atTickEnd } from './tick-end.ts';

const RETAINED = headOf(addresses.tokens);
const LIVE = headOf(addresses.liveTokens);
/** Stands for the call in the subject of a batch. */
const BATCH = '_batch';
/** A batch that has grown to this does not wait for the end of the turn. */
const MAX_BATCH_BYTES = 64 * 1024;

/*
 * On the wire: of each frame the length of its call's id (one byte) and the id, then the length of its bytes (two, the higher one first) and
 * these.
 */
const ID_LENGTH_BYTES = 1;
const FRAME_LENGTH_BYTES = 2;

/** Where the frames of a call are live. */
export interface LiveAddress {
  origin: string;
  callId: string;
}

interface Batch {
  callIds: string[];
  frames: Uint8Array[];
  sizeBytes: number;
}

/**
 * Makes one message of all frames that go to one origin in one turn of the event loop: what a message costs this process, the broker and
 * whoever reads it is many times what a token of text does, and a busy worker hears of many streams in a turn.
 */
export class LiveBatches {
  readonly #publish: (subject: string, batch: Uint8Array) => void;
  /** By origin: what was said in this turn. Each turn has a map of its own (ADR 17). */
  #batches = new Map<string, Batch>();

  constructor(publish: (subject: string, batch: Uint8Array) => void) {
    this.#publish = publish;
  }

  /** @param frame of 64 KiB at most, not written into any more */
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

  /** Sends what there is, before anything else is sent. */
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

/** @param subject of a call's frames: `tok.<origin>.<call>`, or where they are live */
export function liveAddressOf(subject: string): LiveAddress {
  const [, origin = '', callId = ''] = subject.split('.');
  return { origin, callId };
}

/** What to listen to for the live frames of an origin. */
export function livePatternOf(origin: string): string {
  return `${LIVE}${origin}.*`;
}

/**
 * The frames of a message that came live, as views into it; before batches there was a message for each, and an older worker sends such
 * still. What was cut off is left out, as if it were lost.
 * @param each is given the subject at which the frame is kept in two parts: a frame that nobody here reads needs none
 */
export function eachFrameIn(subject: string, message: Uint8Array, each: (retainedAt: string, callId: string, frame: Uint8Array) => void): void {
  const { origin, callId } = liveAddressOf(subject);
  const retainedAt = `${RETAINED}${origin}.`;
  if (callId === BATCH) unpack(message, (one, frame) => each(retainedAt, one, frame));
  else each(retainedAt, callId, message);
}

function unpack(batch: Uint8Array, each: (callId: string, frame: Uint8Array) => void): void {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const idAt = at + ID_LENGTH_BYTES;
    const lengthAt = idAt + (bytes[at] as number);
    const begin = lengthAt + FRAME_LENGTH_BYTES;
    if (begin > bytes.length) return;
    const end = begin + (((bytes[lengthAt] as number) << 8) | (bytes[lengthAt + 1] as number));
    if (end > bytes.length) return;
    each(bytes.toString('latin1', idAt, lengthAt), batch.subarray(begin, end));
    at = end;
  }
}
