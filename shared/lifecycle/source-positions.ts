import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Errors repeat their positions. */
const MAX_KNOWN = 2_000;
const FIELD_BITS = 5;
const COMMA = ','.charCodeAt(0);
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
  /** In front of each source; absent or empty: nothing. */
  sourceRoot: unknown;
  sources: unknown[];
  mappings: string;
}

/**
 * Where the code of built files stands in their sources, by the source maps beside them. A map is read and scanned once for all unknown positions of a
 * stack, and is not kept: a parsed one takes twenty times its size (docs/adr/0160).
 */
export class SourcePositions {
  /** `path:line:column` by the built position; null: it has no source. */
  readonly #known = new Map<string, string | null>();
  readonly #readText: (path: string) => string;

  constructor(readText: (path: string) => string = (path) => readFileSync(path, 'utf8')) {
    this.#readText = readText;
  }

  /**
   * Throws nothing: a map that can't be read or used leaves its positions without a source.
   * @param positions null: of code in no file
   * @returns in the order of `positions`: `path:line:column`, or null without a map, or where code has no source
   */
  sourcesOf(positions: readonly (BuiltPosition | null)[]): (string | null)[] {
    const unknown = new Map<string, BuiltPosition[]>();
    for (const position of positions) {
      if (position === null || !position.url.startsWith('file:') || this.#known.has(keyOf(position))) continue;
      const ofFile = unknown.get(position.url);
      if (ofFile === undefined) unknown.set(position.url, [position]);
      else ofFile.push(position);
    }
    for (const [url, ofFile] of unknown) this.#find(url, ofFile);
    const found = positions.map((position) => (position === null ? null : (this.#known.get(keyOf(position)) ?? null)));
    this.#dropOldest();
    return found;
  }

  #find(url: string, positions: readonly BuiltPosition[]): void {
    const text = this.#textOf(url);
    // Nothing is stored: the file may be readable at the next stack.
    if (text === null) return;
    const map = parseMap(text);
    const sorted = positions.toSorted((a, b) => a.line - b.line);
    const segments = map === null ? [] : segmentsAt(map.mappings, sorted);
    for (const [index, position] of sorted.entries()) {
      const segment = segments[index] ?? null;
      const path = segment === null || map === null ? null : pathOf(map, segment.source, url);
      this.#known.set(keyOf(position), segment === null || path === null ? null : `${path}:${segment.line + 1}:${segment.column + 1}`);
    }
  }

  #textOf(url: string): string | null {
    try {
      return this.#readText(`${fileURLToPath(url)}.map`);
    } catch {
      return null;
    }
  }

  #dropOldest(): void {
    for (const key of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) return;
      this.#known.delete(key);
    }
  }
}

function keyOf({ url, line, column }: BuiltPosition): string {
  return `${url}:${line}:${column}`;
}

/** Null when it isn't the map of one file. An index map has `sections` in place of `mappings`. */
function parseMap(text: string): SourceMapFile | null {
  try {
    const { sourceRoot, sources, mappings } = JSON.parse(text);
    return Array.isArray(sources) && typeof mappings === 'string' ? { sourceRoot, sources, mappings } : null;
  } catch {
    return null;
  }
}

/** Null when the source is no file. */
function pathOf({ sourceRoot, sources }: SourceMapFile, index: number, url: string): string | null {
  const source = sources[index];
  const prefix = typeof sourceRoot === 'string' && sourceRoot !== '' ? sourceRoot.replace(/\/?$/, '/') : '';
  try {
    return typeof source === 'string' ? fileURLToPath(new URL(prefix + source, url)) : null;
  } catch {
    return null;
  }
}

/**
 * For each position the last segment that begins at or before it in its line. One pass, up to the end of the last position's line.
 *
 * `mappings` has a group for each line, ended by `;`, and in it segments, separated by `,`, of 1, 4 or 5 numbers: the column, then source, line and column in it,
 * and a name. Each is the difference to the one before, a column's to that of its line: so all before the position are added up (ECMA-426).
 *
 * @param positions sorted by line
 */
function segmentsAt(mappings: string, positions: readonly BuiltPosition[]): (Segment | null)[] {
  const found: (Segment | null)[] = positions.map(() => null);
  const sums = new Int32Array(5);
  let next = 0;
  for (let line = 1, at = 0; next < positions.length && at <= mappings.length; line += 1) {
    const semicolon = mappings.indexOf(';', at);
    const end = semicolon === -1 ? mappings.length : semicolon;
    const first = next;
    while (positions[next]?.line === line) next += 1;
    if (next === first) addNumbers(sums, mappings, at, end);
    else {
      for (const text of mappings.slice(at, end).split(',')) {
        const fields = addNumbers(sums, text, 0, text.length);
        if (fields > 0) setFrom(segmentOf(sums, fields), sums[0] ?? 0, first);
      }
    }
    sums[0] = 0;
    at = end + 1;
  }
  return found;

  /** For the positions of one line. */
  function setFrom(segment: Segment | null, column: number, first: number): void {
    for (let index = first; index < next; index += 1) {
      if (column < (positions[index]?.column ?? 0)) found[index] = segment;
    }
  }
}

function segmentOf([, source = 0, line = 0, column = 0]: Int32Array, fields: number): Segment | null {
  return fields >= 4 ? { source, line, column } : null;
}

/**
 * Adds the numbers of segments of one line to their sums. A function of its own, without rare branches, so that V8 compiles it within the first map.
 * @returns how many numbers the last segment has
 */
function addNumbers(sums: Int32Array, text: string, start: number, end: number): number {
  let field = 0;
  let value = 0;
  let shift = 0;
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code === COMMA) {
      field = 0;
      continue;
    }
    const digit = valueOfDigit[code] ?? 0;
    value |= (digit & 31) << shift;
    shift += FIELD_BITS;
    if (digit >= 32) continue;
    sums[field] = (sums[field] ?? 0) + ((value & 1) === 1 ? -(value >> 1) : value >> 1);
    field += 1;
    value = 0;
    shift = 0;
  }
  return field;
}
