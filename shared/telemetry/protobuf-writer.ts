const FIRST_BYTES = 4_096;
/** Above this length the copy of Node's own encoder is faster than a loop. */
const MAX_LOOP_CHARS = 64;
const TWO_32 = 2 ** 32;
/** Wire types, the low three bits of a tag. */
const [VARINT, FIXED64, LENGTH_DELIMITED, FIXED32] = [0, 1, 2, 5];

/** Messages of protobuf, field by field, in one buffer that grows. Lengths are the shortest possible varints. */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What was written; valid until the next write. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Forgets what was written behind a length of before. */
  truncate(length: number): void {
    this.#length = length;
  }

  /** Forgets what was written, and keeps the memory up to a bound. */
  clear(mostBytes: number): void {
    this.#length = 0;
    if (this.#bytes.length > mostBytes) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  }

  /** Begins a field that has a message. @returns what `end` takes */
  begin(field: number): number {
    this.#tag(field, LENGTH_DELIMITED);
    this.#ensure(1);
    this.#length += 1;
    return this.#length;
  }

  /** Writes the length of the message that was begun, and moves its bytes where the length takes more than one. */
  end(start: number): void {
    const size = this.#length - start;
    const more = varintBytes(size) - 1;
    if (more > 0) {
      this.#ensure(more);
      this.#bytes.copyWithin(start + more, start, this.#length);
    }
    const end = this.#length + more;
    this.#length = start - 1;
    this.#varint(size);
    this.#length = end;
  }

  /** @param value a whole number of 32 bits, not negative */
  uint(field: number, value: number): void {
    this.#tag(field, VARINT);
    this.#ensure(5);
    this.#varint(value);
  }

  /** @param value a whole number within 64 bits */
  int64(field: number, value: number): void {
    if (value >= 0 && value < TWO_32) {
      this.uint(field, value);
      return;
    }
    this.#tag(field, VARINT);
    this.#ensure(10);
    let low = value >>> 0;
    let high = Math.floor(value / TWO_32) >>> 0;
    while (high > 0 || low > 0x7f) {
      this.#bytes[this.#length++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#bytes[this.#length++] = low;
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, FIXED32);
    this.#ensure(4);
    this.#length = this.#bytes.writeUInt32LE(value, this.#length);
  }

  /** An unsigned number as its two halves. */
  fixed64(field: number, low: number, high: number): void {
    this.#tag(field, FIXED64);
    this.#ensure(8);
    this.#bytes.writeUInt32LE(low, this.#length);
    this.#length = this.#bytes.writeUInt32LE(high, this.#length + 4);
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED64);
    this.#ensure(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  /** In UTF-8. */
  text(field: number, text: string): void {
    const start = this.begin(field);
    if (text.length > MAX_LOOP_CHARS || !this.#ascii(text)) {
      this.#ensure(text.length * 3);
      this.#length = start + this.#bytes.write(text, start);
    }
    this.end(start);
  }

  /** The bytes of a hexadecimal text. */
  hex(field: number, text: string): void {
    const start = this.begin(field);
    this.#ensure(text.length / 2);
    this.#length += this.#bytes.write(text, start, 'hex');
    this.end(start);
  }

  /** Whole fields, as another writer has made them. */
  raw(bytes: Uint8Array): void {
    this.#ensure(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** False for a text with another character: then nothing is written. */
  #ascii(text: string): boolean {
    const { length } = text;
    this.#ensure(length);
    const bytes = this.#bytes;
    const start = this.#length;
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[start + index] = code;
    }
    this.#length += length;
    return true;
  }

  #tag(field: number, wireType: number): void {
    this.#ensure(5);
    this.#varint((field << 3) | wireType);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  #ensure(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.written);
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest >>>= 7) bytes += 1;
  return bytes;
}
