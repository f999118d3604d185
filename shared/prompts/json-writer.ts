/** Characters of a text that are written at once. Of a longer one `JSON.stringify` makes a text in parts, which is copied once more to be encoded. */
const CHUNK_CHARS = 16 * 1024;
/** Values without a long text that are written by one `JSON.stringify`: by one each they would take several times as long. */
const MOST_TOGETHER = 64;
/** The largest buffer, as a multiple of what was written into it, that is not copied to one of its size. */
const MOST_RETAINED = 1.25;
/** Of UTF-8, for a UTF-16 unit. */
const MOST_BYTES_PER_CHAR = 3;

/** Writes JSON in UTF-8, as `JSON.stringify` has it, into one buffer that grows. */
export class JsonWriter {
  #bytes: Buffer;
  #lengthBytes: number;
  /** Not encoded yet: many short texts are encoded as one. */
  #pending = '';

  /**
   * @param reservedBytes left free in front
   * @param expectedBytes of what is written behind them
   */
  constructor(reservedBytes: number, expectedBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(reservedBytes + expectedBytes);
    this.#lengthBytes = reservedBytes;
  }

  /** With all that was written. */
  get lengthBytes(): number {
    this.#encode();
    return this.#lengthBytes;
  }

  json(text: string): void {
    this.#pending += text;
    if (this.#pending.length >= CHUNK_CHARS) this.#encode();
  }

  /** A value of strings, of lists and of objects without `toJSON` or absent fields. */
  value(value: unknown): void {
    if (!hasLongText(value)) this.json(JSON.stringify(value));
    else if (Array.isArray(value)) this.#list(value);
    else if (typeof value === 'object' && value !== null) this.#object(value as Record<string, unknown>);
    else this.#longText(String(value));
  }

  /** The buffer up to its end, with the reserved bytes. */
  done(): Buffer {
    // It may grow.
    this.#encode();
    const written = this.#bytes.subarray(0, this.#lengthBytes);
    return this.#bytes.byteLength <= written.byteLength * MOST_RETAINED ? written : Buffer.concat([written]);
  }

  #list(values: readonly unknown[]): void {
    let separator = '[';
    let short: unknown[] = [];
    const writeShort = () => {
      if (short.length === 0) return;
      this.json(`${separator}${JSON.stringify(short).slice(1, -1)}`);
      separator = ',';
      short = [];
    };
    for (const value of values) {
      if (!hasLongText(value)) {
        if (short.push(value) === MOST_TOGETHER) writeShort();
        continue;
      }
      writeShort();
      this.json(separator);
      separator = ',';
      this.value(value);
    }
    writeShort();
    this.json(separator === '[' ? '[]' : ']');
  }

  #object(members: Record<string, unknown>): void {
    let separator = '{';
    for (const name of Object.keys(members)) {
      this.json(`${separator}${JSON.stringify(name)}:`);
      this.value(members[name]);
      separator = ',';
    }
    this.json(separator === '{' ? '{}' : '}');
  }

  #longText(text: string): void {
    this.json('"');
    this.#encode();
    for (let start = 0; start < text.length; ) {
      const end = endOfChunk(text, start + CHUNK_CHARS);
      this.#write(JSON.stringify(text.slice(start, end)).slice(1, -1));
      start = end;
    }
    this.json('"');
  }

  #encode(): void {
    const text = this.#pending;
    this.#pending = '';
    this.#write(text);
  }

  #write(text: string): void {
    const most = this.#lengthBytes + text.length * MOST_BYTES_PER_CHAR;
    if (most > this.#bytes.byteLength) this.#grow(this.#lengthBytes + Buffer.byteLength(text));
    this.#lengthBytes += this.#bytes.write(text, this.#lengthBytes);
  }

  #grow(neededBytes: number): void {
    if (neededBytes <= this.#bytes.byteLength) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, this.#bytes.byteLength * 2));
    this.#bytes.copy(larger, 0, 0, this.#lengthBytes);
    this.#bytes = larger;
  }
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > CHUNK_CHARS;
  if (Array.isArray(value)) return value.some(hasLongText);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLongText);
}

/** Not between the two halves of a pair: each alone is written as an escape. */
function endOfChunk(text: string, end: number): number {
  const isInPair = end < text.length && isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end));
  return isInPair ? end + 1 : Math.min(end, text.length);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
