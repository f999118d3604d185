import { EventStreamCodec } from '@smithy/eventstream-codec';

/** Length of the frame, length of its headers, and a checksum of both. */
const PRELUDE_BYTES = 12;
/** A prelude, and the checksum of the whole. */
const MIN_FRAME_BYTES = PRELUDE_BYTES + 4;
/** Of one frame; what a model generates in one event is far shorter. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/** A frame of `application/vnd.amazon.eventstream`. */
export interface Frame {
  /** A header of text; null: absent, or of another type. */
  header(name: string): string | null;
  body: Uint8Array;
}

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : asBuffer(bytes).toString('utf8')),
  (text) => Buffer.from(text),
);

/** Text of a frame's body. */
export function textOf({ body }: Frame): string {
  return asBuffer(body).toString('utf8');
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** An incremental reader of frames, which may be cut at any byte. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** What `#pieces` must have before they are joined: joining at each piece would copy a long frame many times. */
  #neededBytes = PRELUDE_BYTES;

  /** Whether the body ended within a frame. */
  get isCut(): boolean {
    return this.#bytes > 0;
  }

  /** Passes the frames that a piece completes. @throws SyntaxError for a frame that is too long or damaged */
  read(piece: Buffer, onFrame: (frame: Frame) => void): void {
    let rest = piece;
    if (this.#bytes > 0) {
      this.#pieces.push(piece);
      this.#bytes += piece.byteLength;
      if (this.#bytes < this.#neededBytes) return;
      rest = Buffer.concat(this.#pieces, this.#bytes);
      this.#pieces = [];
      this.#bytes = 0;
    }
    let frameBytes = PRELUDE_BYTES;
    while (rest.byteLength >= PRELUDE_BYTES) {
      frameBytes = lengthOf(rest);
      if (rest.byteLength < frameBytes) break;
      onFrame(decoded(rest.subarray(0, frameBytes)));
      rest = rest.subarray(frameBytes);
      frameBytes = PRELUDE_BYTES;
    }
    this.#neededBytes = frameBytes;
    if (rest.byteLength === 0) return;
    this.#pieces = [rest];
    this.#bytes = rest.byteLength;
  }
}

function lengthOf(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  if (length < MIN_FRAME_BYTES || length > MAX_FRAME_BYTES) throw new SyntaxError(`a frame of ${length} bytes`);
  return length;
}

/** Both checksums are verified. */
function decoded(bytes: Buffer): Frame {
  try {
    const { headers, body } = codec.decode(bytes);
    return {
      header(name) {
        const header = headers[name];
        return header?.type === 'string' ? header.value : null;
      },
      body,
    };
  } catch (error) {
    throw new SyntaxError('a damaged frame', { cause: error });
  }
}
