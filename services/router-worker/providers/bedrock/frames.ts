import { crc32 } from 'node:zlib';
import { HeaderMarshaller } from '@smithy/eventstream-codec';

/** Length of the frame and of its headers, behind them their checksum. */
const LENGTHS_BYTES = 8;
const CHECKSUM_BYTES = 4;
const PRELUDE_BYTES = LENGTHS_BYTES + CHECKSUM_BYTES;
/** A prelude, and the checksum of all before it. */
const MIN_FRAME_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES;
/** Of one frame; what a model generates in one event is far shorter. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

const MIN_HELD_BYTES = 1_024;
const EMPTY = Buffer.alloc(0);

/** A frame of `application/vnd.amazon.eventstream`. */
export interface Frame {
  /** Those that are texts. */
  headers: ReadonlyMap<string, string>;
  text: string;
}

const marshaller = new HeaderMarshaller(
  (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
  (text) => Buffer.from(text),
);

/** An incremental reader of frames, which may be cut at any byte. */
export class FrameReader {
  /** The begun frame: copied, since each of many small pieces would take more memory than its bytes. */
  #held: Buffer = EMPTY;
  #bytes = 0;
  /** What it must have before it is looked at again. */
  #neededBytes = PRELUDE_BYTES;
  /** Of the last frame. Texts have the same headers one after the other, and parsing them costs more than the rest of a frame. */
  #head: Buffer = Buffer.alloc(0);
  #headers: Frame['headers'] = new Map();

  /** Whether the body ended within a frame. */
  get isCut(): boolean {
    return this.#bytes > 0;
  }

  /** Passes the frames that a piece completes. @throws SyntaxError for a frame that is too long or damaged */
  read(piece: Buffer, onFrame: (frame: Frame) => void): void {
    let rest = piece;
    if (this.#bytes > 0) {
      this.#hold(piece);
      if (this.#bytes < this.#neededBytes) return;
      rest = this.#held.subarray(0, this.#bytes);
      this.#held = EMPTY;
      this.#bytes = 0;
    }
    this.#neededBytes = PRELUDE_BYTES;
    while (rest.byteLength >= PRELUDE_BYTES) {
      const frameBytes = lengthOf(rest);
      if (rest.byteLength < frameBytes) {
        this.#neededBytes = frameBytes;
        break;
      }
      onFrame(this.#decoded(rest, frameBytes));
      rest = rest.subarray(frameBytes);
    }
    if (rest.byteLength > 0) this.#hold(rest);
  }

  /** Doubles the memory when it is used up, so that a long frame is copied a few times only. */
  #hold(piece: Buffer): void {
    const bytes = this.#bytes + piece.byteLength;
    if (bytes > this.#held.byteLength) {
      const larger = Buffer.allocUnsafe(Math.max(bytes, 2 * this.#held.byteLength, MIN_HELD_BYTES));
      this.#held.copy(larger, 0, 0, this.#bytes);
      this.#held = larger;
    }
    piece.copy(this.#held, this.#bytes);
    this.#bytes = bytes;
  }

  #decoded(bytes: Buffer, frameBytes: number): Frame {
    const end = frameBytes - CHECKSUM_BYTES;
    if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new SyntaxError('a damaged frame');
    const bodyAt = PRELUDE_BYTES + bytes.readUInt32BE(CHECKSUM_BYTES);
    if (bodyAt > end) throw new SyntaxError('a frame that is shorter than its headers');
    if (this.#head.compare(bytes, PRELUDE_BYTES, bodyAt) !== 0) {
      // With memory of its own, not a slice of the pool: the package reads values by their stated lengths, and only the end of the memory stops it.
      this.#head = Buffer.from(new Uint8Array(bytes.subarray(PRELUDE_BYTES, bodyAt)).buffer);
      this.#headers = headersIn(this.#head);
    }
    return { headers: this.#headers, text: bytes.toString('utf8', bodyAt, end) };
  }
}

/** Of the frame that begins here. Its checksum is verified before the rest is waited for. */
function lengthOf(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  if (length < MIN_FRAME_BYTES || length > MAX_FRAME_BYTES) throw new SyntaxError(`a frame of ${length} bytes`);
  if (crc32(bytes.subarray(0, LENGTHS_BYTES)) !== bytes.readUInt32BE(LENGTHS_BYTES)) throw new SyntaxError('a damaged frame');
  return length;
}

function headersIn(head: Buffer): Frame['headers'] {
  try {
    const parsed = marshaller.parse(new DataView(head.buffer, head.byteOffset, head.byteLength));
    return new Map(Object.entries(parsed).flatMap(([name, header]): [string, string][] => (header.type === 'string' ? [[name, header.value]] : [])));
  } catch (error) {
    throw new SyntaxError('headers that can not be read', { cause: error });
  }
}
