/** Bounds on the JSON of a body. */
export interface JsonBounds {
  /** Levels of objects and lists. */
  depth: number;
  /** Of any kind, each object and list counted with what is in it. */
  values: number;
}

export interface JsonExcess {
  bound: keyof JsonBounds;
  /** Offset in bytes of the first object or list that is too deep, or of what stands before the first value too many. */
  at: number;
}

/** Parsing less takes some milliseconds, whatever it is, and it holds little more values than the 100,000 that a large request may have. */
const SCANNED_BYTES = 256 * 1_024;
/** Of a string: looked at one by one, since a call of `indexOf` costs as much as several. Longer strings are skipped by it. */
const NEAR_BYTES = 8;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

/**
 * The first bound that a large JSON text exceeds, before it is parsed: 32 MiB of brackets take seconds and gigabytes to parse. Null: none, or the text is
 * shorter than 256 KiB, which can do no harm. In linear time, and without memory. Values under a repeated name count, too.
 * @param json UTF-8, whose bytes beyond ASCII are none of JSON's own signs; need not be valid: what is within the bounds may still fail to parse
 */
export function jsonExcess(json: Buffer, { depth, values }: JsonBounds): JsonExcess | null {
  const size = json.byteLength;
  if (size < SCANNED_BYTES) return null;
  let levels = 0;
  let count = 1;
  for (let at = 0; at < size; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = closingQuote(json, at + 1);
    } else if (byte === COMMA) {
      count += 1;
      if (count > values) return { bound: 'values', at };
    } else if (byte === OBJECT || byte === LIST) {
      levels += 1;
      if (levels > depth) return { bound: 'depth', at };
      while (isSpace(json[at + 1])) at += 1;
      const next = json[at + 1];
      if (next !== OBJECT_END && next !== LIST_END) count += 1;
      if (count > values) return { bound: 'values', at };
    } else if (byte === OBJECT_END || byte === LIST_END) {
      levels -= 1;
    }
  }
  return null;
}

/** Of a string without one: the end of the text. @param start the first byte in the string */
function closingQuote(json: Buffer, start: number): number {
  const size = json.byteLength;
  let at = start;
  for (;;) {
    for (const near = Math.min(size, at + NEAR_BYTES); at < near; at += json[at] === BACKSLASH ? 2 : 1) if (json[at] === QUOTE) return at;
    if (at >= size) return size;
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return size;
    let unescaped = quote;
    // Not before `at`, where no escape is open: each backslash is looked at once.
    while (unescaped > at && json[unescaped - 1] === BACKSLASH) unescaped -= 1;
    if ((quote - unescaped) % 2 === 0) return quote;
    at = quote + 1;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
