import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { endOfString, jsonTokens } from '#shared/json-tokens.ts';

/** Keys from the outermost object to a value; null: any item of a list. */
export type JsonPath = readonly (string | null)[];

const STRUCTURE = /["{}[\],:]/g;
/** Many digits, an exponent, -0, or a fraction that is tiny or ends with zero: every number that `JSON.stringify` writes in another way has one of these. */
const UNUSUAL = /\d[\d.]{15}|\d[eE]|-0(?!\d)|\.0{6}|\.\d{0,14}0(?!\d)/;
/** What follows a key. */
const COLON = /[ \t\n\r]*:/y;

/** While `writeExactly` runs. `mark`: made for it alone, so that no string of the value has it. */
let writing: { mark: string; texts: string[] } | null = null;

/** Valid JSON that is written again as it is. Outside of `writeExactly` it is what `JSON.parse` reads from it. */
export class ExactJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isObject(): boolean {
    return this.text.trimStart().startsWith('{');
  }

  parsed(): unknown {
    return JSON.parse(this.text);
  }

  toJSON(): unknown {
    if (writing === null) return this.parsed();
    return `${writing.mark}${writing.texts.push(this.text) - 1}`;
  }
}

/** An object, or one that `withExactNumbers` has put in its place. */
export const exactObject = z.union([z.record(z.string(), z.unknown()), z.instanceof(ExactJson)]);

/**
 * As `JSON.parse`; with numbers that would be written in another way an `ExactJson`, unless an object has a key twice, which some APIs refuse. In linear time.
 * @throws SyntaxError
 */
export function parseExactly(json: string): unknown {
  const value: unknown = JSON.parse(json);
  return UNUSUAL.test(json) && hasKeys(value, keysOf(json)) ? new ExactJson(wellFormed(json)) : value;
}

/** As `JSON.stringify` writes them: UTF-8 has no lone surrogates. */
function wellFormed(json: string): string {
  return json.replace(/\p{Surrogate}/gu, (lone) => `\\u${lone.charCodeAt(0).toString(16)}`);
}

export function isObject(value: unknown): value is object {
  if (value instanceof ExactJson) return value.isObject;
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Replaces the objects at these places by what `parseExactly` makes of them. In linear time; without an object there, in that of looking.
 * @param value what `JSON.parse` reads from `json`
 * @returns the same value
 */
export function withExactNumbers(value: unknown, json: string, places: readonly JsonPath[]): unknown {
  if (!places.some((place) => hasObjectAt(value, place, 0)) || !UNUSUAL.test(json)) return value;
  // An object that comes twice under one key is replaced twice: the last one counts, as for JSON.parse.
  for (const { path, text } of objectsAt(json, places)) replaceObject(value, path, parseExactly(text));
  return value;
}

/** As `JSON.stringify`, with numbers as they were written. */
export function exactJson(value: unknown): string {
  return value instanceof ExactJson ? value.text : writeExactly(() => JSON.stringify(value));
}

/** What `write` makes with `JSON.stringify`, with the text of each `ExactJson` in it. @param write not async */
export function writeExactly(write: () => string): string {
  const outer = writing;
  const { mark, texts } = { mark: randomUUID(), texts: [] as string[] };
  writing = { mark, texts };
  try {
    return withTexts(write(), mark, texts);
  } finally {
    writing = outer;
  }
}

function withTexts(json: string, mark: string, texts: readonly string[]): string {
  if (texts.length === 0) return json;
  const [first, ...rest] = json.split(`"${mark}`);
  const written = rest.map((piece) => {
    const quote = piece.indexOf('"');
    return `${texts[Number(piece.slice(0, quote))]}${piece.slice(quote + 1)}`;
  });
  return [first, ...written].join('');
}

/** @param depth of the value in the path */
function hasObjectAt(value: unknown, place: JsonPath, depth: number): boolean {
  const key = place[depth];
  if (key === undefined) return isObject(value);
  if (key === null) return Array.isArray(value) && value.some((item) => hasObjectAt(item, place, depth + 1));
  return isObject(value) && hasObjectAt(fieldOf(value, key), place, depth + 1);
}

/** An object in the text, with the keys and indices of the values around it. */
interface ObjectAt {
  path: readonly (string | number)[];
  text: string;
}

/** @param json valid JSON */
function* objectsAt(json: string, places: readonly JsonPath[]): Generator<ObjectAt, void> {
  const path: (string | number)[] = [];
  let string = '';
  let found: { start: number; depth: number } | null = null;
  for (const { text: token, index } of jsonTokens(json, STRUCTURE)) {
    switch (token) {
      case '{':
        if (found === null && places.some((place) => isAt(path, place))) found = { start: index, depth: path.length };
        path.push('');
        break;
      case '[':
        path.push(0);
        break;
      case ':':
        path[path.length - 1] = string.slice(1, -1);
        break;
      case ',': {
        const last = path.at(-1);
        if (typeof last === 'number') path[path.length - 1] = last + 1;
        break;
      }
      case '}':
      case ']':
        path.pop();
        if (path.length !== found?.depth) break;
        yield { path: [...path], text: json.slice(found.start, index + 1) };
        found = null;
        break;
      default:
        string = token;
    }
  }
}

function isAt(path: readonly (string | number)[], place: JsonPath): boolean {
  return path.length === place.length && place.every((key, depth) => (key === null ? typeof path[depth] === 'number' : key === path[depth]));
}

function replaceObject(value: unknown, path: readonly (string | number)[], by: unknown): void {
  let around = value;
  for (const key of path.slice(0, -1)) around = fieldOf(around, key);
  const last = path.at(-1);
  if (last !== undefined && isObject(fieldOf(around, last))) Reflect.set(around as object, last, by);
}

function fieldOf(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** Whether its objects have so many keys. Fewer are left of a text with one that comes twice. */
function hasKeys(value: unknown, count: number): boolean {
  const unread = [value];
  let keys = 0;
  while (keys < count && unread.length > 0) {
    const next = unread.pop();
    if (typeof next !== 'object' || next === null) continue;
    const fields: unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (fields !== next) keys += fields.length;
    for (const field of fields) if (typeof field === 'object' && field !== null) unread.push(field);
  }
  return keys === count;
}

/** How many keys its objects have, also those that come twice. */
function keysOf(json: string): number {
  let keys = 0;
  for (let quote = json.indexOf('"'); quote !== -1; quote = json.indexOf('"', COLON.lastIndex)) {
    const end = endOfString(json, quote);
    COLON.lastIndex = end;
    if (COLON.test(json)) keys += 1;
    else COLON.lastIndex = end;
  }
  return keys;
}
