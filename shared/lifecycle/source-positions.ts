import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Errors repeat their positions. */
const MAX_KNOWN = 2_000;
const FIELD_BITS = 5;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** By character code. */
const valueOfDigit = Uint8Array.from({ length: 128 }, (_, code) => Math.max(0, DIGITS.indexOf(String.fromCharCode(code))));

/** Of a built file; lines and columns from 1, as in a stack. */
export interface BuiltPosition {
  /** `file:` URL. */
  url: string;
  line: number;
  column: number;
}

/** Of a source, by its index in the map; lines and columns from 0. */
interface Segment {
  source: number;
  line: number;
  column: number;
}

interface SourceMapFile {
  sources: string[];
  mappings: string;
}

/**
 * Where the code of built files stands in their sources, by the source maps beside them. A map is read when one of its positions is first asked for, is
 * scanned up to that position, and is not kept: a parsed one takes twenty times its size (docs/adr/0160).
 */
export class SourcePositions {
  /** `path:line:column` by the built position; null: it has no source. */
  readonly #known = new Map<string, string | null>();
  readonly #readText: (path: string) => string;

  constructor(readText: (path: string) => string = (path) => readFileSync(path, 'utf8')) {
    this.#readText = readText;
  }

  /** @returns `path:line:column`, or null without a map, or where code has no source */
  sourceOf({ url, line, column }: BuiltPosition): string | null {
    if (!url.startsWith('file:')) return null;
    const key = `${url}:${line}:${column}`;
    let found = this.#known.get(key);
    if (found === undefined) {
      found = this.#find({ url, line, column });
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(key, found);
    }
    return found;
  }

  #find({ url, line, column }: BuiltPosition): string | null {
    const map = this.#mapOf(url);
    const segment = map === null ? null : segmentAt(map.mappings, { line: line - 1, column: column - 1 });
    const source = segment === null ? undefined : map?.sources[segment.source];
    if (segment === null || source === undefined) return null;
    return `${fileURLToPath(new URL(source, url))}:${segment.line + 1}:${segment.column + 1}`;
  }

  /** Null: there is none that can be read. */
  #mapOf(url: string): SourceMapFile | null {
    try {
      return JSON.parse(this.#readText(`${fileURLToPath(url)}.map`)) as SourceMapFile;
    } catch {
      return null;
    }
  }
}

/**
 * The last segment that begins at or before a position of its line.
 *
 * `mappings` has a group for each line, ended by `;`, and in it segments, separated by `,`, of 1, 4 or 5 numbers: the column, then source, line and column in it,
 * and a name. Each is the difference to the one before, a column's to that of its line: so all before the position are added up (ECMA-426).
 */
function segmentAt(mappings: string, position: { line: number; column: number }): Segment | null {
  const sums = [0, 0, 0, 0, 0];
  let found: Segment | null = null;
  let line = 0;
  let field = 0;
  let at = 0;
  const endSegment = () => {
    const [column = 0, source = 0, sourceLine = 0, sourceColumn = 0] = sums;
    if (line === position.line && field > 0 && column <= position.column) found = field >= 4 ? { source, line: sourceLine, column: sourceColumn } : null;
    field = 0;
  };
  while (at < mappings.length && line <= position.line) {
    const character = mappings[at];
    if (character === ',' || character === ';') {
      at += 1;
      endSegment();
      if (character === ',') continue;
      line += 1;
      sums[0] = 0;
      continue;
    }
    let value = 0;
    let shift = 0;
    for (let isLast = false; !isLast && at < mappings.length; at += 1) {
      const digit = valueOfDigit[mappings.charCodeAt(at)] ?? 0;
      value |= (digit & 31) << shift;
      shift += FIELD_BITS;
      isLast = digit < 32;
    }
    sums[field] = (sums[field] ?? 0) + ((value & 1) === 1 ? -(value >> 1) : value >> 1);
    field += 1;
  }
  endSegment();
  return found;
}
