import { randomUUID } from 'node:crypto';
import { jsonTokens } from '#shared/json-tokens.ts';

/** Keys from the outermost object to a value, each as it is written, quoted; null: any item of a list. Empty: the whole text. */
export type JsonPath = readonly (string | null)[];

/** Before the text of a number, in a string that stands for it. Its random part is not known outside, so that no string of a client or an upstream has it. */
const MARK = `switchyard/number/${randomUUID()}:`;
const QUOTED_MARK = `"${MARK}`;
const WHOLE: readonly JsonPath[] = [[]];
const STRING_OR_NUMBER = /"|-?\d[\d.eE+-]*/g;
const TOKEN = /["{}[\],:]|-?\d[\d.eE+-]*/g;
/** Many digits, an exponent, -0, or a fraction that is tiny or ends with zero: every number that `JSON.stringify` writes in another way has one of these. */
const UNUSUAL = /\d[\d.]{15}|\d[eE]|-0(?!\d)|\.0{6}|\.\d{0,14}0(?!\d)/;

/** As `JSON.parse`, with strings that `exactJson` reads in place of numbers that would be written in another way. @throws SyntaxError */
export function parseExactly(json: string): unknown {
  return withExactNumbers(JSON.parse(json), json, WHOLE);
}

/**
 * The same value with such strings in it at these places. Without the last key of a path in the text it costs no more than the search for it. In linear time.
 * @param value what `JSON.parse` reads from `json`
 */
export function withExactNumbers(value: unknown, json: string, places: readonly JsonPath[]): unknown {
  const isThere = places.some((path) => json.includes(path.at(-1) ?? ''));
  if (!isThere || !UNUSUAL.test(json)) return value;
  const marked = withMarks(json, places);
  return marked === json ? value : JSON.parse(marked);
}

/** As `JSON.stringify`, with the numbers as they were written. */
export function exactJson(value: unknown): string {
  return withoutMarks(JSON.stringify(value));
}

/** The JSON that `JSON.stringify` makes of values with such strings: the numbers in their place. */
export function withoutMarks(json: string): string {
  let written = '';
  let end = 0;
  for (let mark = json.indexOf(QUOTED_MARK); mark !== -1; mark = json.indexOf(QUOTED_MARK, end)) {
    const start = mark + QUOTED_MARK.length;
    const quote = json.indexOf('"', start);
    written += json.slice(end, mark) + json.slice(start, quote);
    end = quote + 1;
  }
  return end === 0 ? json : written + json.slice(end);
}

/** @param json valid JSON */
function withMarks(json: string, places: readonly JsonPath[]): string {
  /** Of the objects around; null: a list, or before the first key. */
  const keys: (string | null)[] = [];
  const isAtPlace = () => places.some((path) => path.length === keys.length && path.every((key, depth) => key === keys[depth]));
  let string: string | null = null;
  /** Number of keys of the place around; null: none. */
  let placeDepth: number | null = isAtPlace() ? 0 : null;
  let marked = '';
  let end = 0;
  // Nothing is outside of the whole text: its brackets and keys need not be read.
  for (const { text: token, index } of jsonTokens(json, placeDepth === null ? TOKEN : STRING_OR_NUMBER)) {
    if (token === '{' || token === '[') keys.push(null);
    else if (token === ':') {
      keys[keys.length - 1] = string;
      if (placeDepth === null && isAtPlace()) placeDepth = keys.length;
    } else if (token === ',' || token === '}' || token === ']') {
      if (placeDepth === keys.length) placeDepth = null;
      if (token !== ',') keys.pop();
    } else if (token.startsWith('"')) string = token;
    else if (placeDepth !== null && String(Number(token)) !== token) {
      marked += `${json.slice(end, index)}${QUOTED_MARK}${token}"`;
      end = index + token.length;
    }
  }
  return end === 0 ? json : marked + json.slice(end);
}
