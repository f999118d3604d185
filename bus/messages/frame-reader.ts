import { type ReadyFrame, readFrame } from './frame.ts';

/** Between a chunk's head and its delta, and after the delta, when the chunk has nothing else. */
export const DELTA_START = ',"choices":[{"index":0,"delta":';
export const DELTA_END = ',"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}\n\n';

/** Can't occur in a JSON string, where quotes are escaped: the first match ends the head. */
const HEAD_END = ',"choices":[';
const DATA_START = '\ndata: {';
const TEXT_START = `${DELTA_START}{"content":`;
const AFTER_TEXT = Buffer.from(`}${DELTA_END}`, 'latin1');
const ZERO = 48;

/** A text frame of an attempt that has no template yet. */
interface HeadlessFrame {
  kind: 'headless';
  attempt: number;
  seq: number;
}

/** The bytes around the texts of one attempt. */
interface ChunkTemplate {
  attempt: number;
  /** Up to the sequence number. */
  beforeSeq: Uint8Array;
  /** From the sequence number to the text. */
  beforeText: Uint8Array;
}

/**
 * Expands the frames of one call to SSE events. All chunks of an attempt have the same head (call, model, provider): text frames omit it, and it is taken
 * from a content frame.
 */
export class FrameReader {
  readonly #callId: string;
  /** Of the newest attempt with a known head. */
  #template: ChunkTemplate | null = null;

  constructor(callId: string) {
    this.#callId = callId;
  }

  /** Null: not a frame of this call. */
  read(bytes: Uint8Array): ReadyFrame | HeadlessFrame | null {
    const frame = readFrame(this.#callId, bytes);
    if (frame === null) return null;
    if (frame.kind === 'text') {
      const { attempt, seq, json } = frame;
      const template = this.#template;
      if (template === null || template.attempt !== attempt) return { kind: 'headless', attempt, seq };
      return { kind: 'content', attempt, seq, sse: eventOf(template, seq, json) };
    }
    if ((frame.kind === 'content' || frame.kind === 'done') && frame.attempt > (this.#template?.attempt ?? 0)) this.#compile(frame.attempt, frame.sse);
    return frame;
  }

  /** Finds an attempt's head in any frame: the first may be lost, and workers repeat the head now and then. */
  seekHead(attempt: number, frames: readonly Uint8Array[]): void {
    for (const bytes of frames) {
      if (this.#template?.attempt === attempt) return;
      const frame = readFrame(this.#callId, bytes);
      if ((frame?.kind === 'content' || frame?.kind === 'done') && frame.attempt === attempt) this.#compile(attempt, frame.sse);
    }
  }

  #compile(attempt: number, sse: Uint8Array): void {
    const beforeText = beforeTextIn(sse);
    if (beforeText !== null) this.#template = { attempt, beforeSeq: apart(Buffer.from(`id: ${this.#callId}.${attempt}.`, 'latin1')), beforeText };
  }
}

/** From the end of the first `id:` line to where a text begins; null when the first event is no chunk. */
function beforeTextIn(sse: Uint8Array): Uint8Array | null {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  const start = bytes.indexOf('\n');
  const headEnd = bytes.indexOf(HEAD_END, start);
  if (bytes.indexOf(DATA_START, start) !== start || headEnd < 0 || headEnd > bytes.indexOf('\n', start + 1)) return null;
  return apart(Buffer.concat([bytes.subarray(start, headEnd), Buffer.from(TEXT_START, 'latin1')]));
}

/** A view would hold its whole source buffer until the call ends. */
function apart(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function eventOf({ beforeSeq, beforeText }: ChunkTemplate, seq: number, json: Uint8Array): Uint8Array {
  const digits = digitsOf(seq);
  const sse = Buffer.allocUnsafe(beforeSeq.length + digits + beforeText.length + json.length + AFTER_TEXT.length);
  sse.set(beforeSeq, 0);
  let at = beforeSeq.length + digits;
  for (let left = seq, index = at - 1; index >= beforeSeq.length; index -= 1, left = Math.floor(left / 10)) sse[index] = ZERO + (left % 10);
  sse.set(beforeText, at);
  at += beforeText.length;
  sse.set(json, at);
  sse.set(AFTER_TEXT, at + json.length);
  return sse;
}

function digitsOf(number: number): number {
  let digits = 1;
  for (let left = number; left >= 10; left /= 10) digits += 1;
  return digits;
}
