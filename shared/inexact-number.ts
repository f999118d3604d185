import { pointerAt } from './json-pointer-at.ts';
import { jsonTokens } from './json-tokens.ts';

/** Digits, perhaps with a point between them. Fewer are below 2^53. */
const LONG = /\d[\d.]{15}/;
/** Of numbers that exceed all doubles, with fewer digits. */
const LARGE_EXPONENT = /[eE]\+?\d{3}/;
const TOKEN = /"|-?\d[\d.eE+-]*/g;
const PLAIN = /^-?\d+$/;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** More exceed all doubles. */
const MAX_DIGITS = 310;
/** Of `toPrecision`. */
const MAX_PRECISION = 100;

export interface InexactNumber {
  /** As it is written, cut with an ellipsis after 310 characters. */
  number: string;
  /** JSON Pointer. */
  path: string;
}

/**
 * The first integer that parsing changes, or number that exceeds all doubles. Of an integer: neither the nearest double nor what is written for it has its value.
 * `9007199254740993.0` and `9007199254740993e0` are integers, too, unless they are what the nearest double is with as many digits. Null: there is none.
 * @param json valid JSON
 */
export function inexactNumber(json: string): InexactNumber | null {
  const found = firstInexact(json);
  if (found === null) return null;
  const { text: number, index } = found;
  return { number: number.length > MAX_DIGITS ? `${number.slice(0, MAX_DIGITS)}…` : number, path: pointerAt(json, index) };
}

/** Whether there is one, without the cost of its path. @param json valid JSON */
export function hasInexactNumber(json: string): boolean {
  return firstInexact(json) !== null;
}

function firstInexact(json: string): { text: string; index: number } | null {
  if (!mayBeInexact(json)) return null;
  for (const token of jsonTokens(json, TOKEN)) {
    if (!token.text.startsWith('"') && (!Number.isFinite(Number(token.text)) || isChangedInteger(token.text))) return token;
  }
  return null;
}

/**
 * The same JSON with strings in place of numbers that exceed all doubles, and of integers without fraction and exponent that parsing would change. Each is the text
 * of its number.
 * @param json valid JSON
 */
export function quoteInexactNumbers(json: string): string {
  if (!mayBeInexact(json)) return json;
  const isQuoted = (number: string) => !Number.isFinite(Number(number)) || (PLAIN.test(number) && isChangedInteger(number));
  let quoted = '';
  let end = 0;
  for (const { text, index } of jsonTokens(json, TOKEN)) {
    if (text.startsWith('"') || !isQuoted(text)) continue;
    quoted += `${json.slice(end, index)}"${text}"`;
    end = index + text.length;
  }
  return end === 0 ? json : quoted + json.slice(end);
}

/** False: it has no inexact number. Of any text, be it JSON or not, and at little cost. */
export function mayBeInexact(json: string): boolean {
  return LONG.test(json) || LARGE_EXPONENT.test(json);
}

/** Not of a fraction, which is kept as the nearest double. @param token a finite number */
function isChangedInteger(token: string): boolean {
  if (!LONG.test(token)) return false;
  const read = Number(token);
  if (String(read) === token) return false;
  const written = decimalOf(token);
  if (written === null || written.exponent < 0 || isSame(written, String(read))) return false;
  // A double is finite: these are at most 309 digits.
  if (BigInt(read) === BigInt(written.digits) * 10n ** BigInt(written.exponent)) return false;
  return PLAIN.test(token) || !isRounded(read, written);
}

/** Whether this is what is written for the double with as many digits: its sender may have rounded it. */
function isRounded(read: number, written: Decimal): boolean {
  const count = written.digits.replace('-', '').length;
  return count <= MAX_PRECISION && isSame(written, read.toPrecision(count));
}

function isSame({ digits, exponent }: Decimal, number: string): boolean {
  const other = decimalOf(number);
  return other?.digits === digits && other.exponent === exponent;
}

/** `digits` × 10^`exponent`; the sign is with the digits, which have no zeros at either end. */
interface Decimal {
  digits: string;
  exponent: number;
}

/** Null: it is no number of JSON. */
function decimalOf(number: string): Decimal | null {
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(number) ?? [];
  if (whole === undefined) return null;
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = withoutZeros(all);
  if (digits === '') return { digits: '0', exponent: 0 };
  return { digits: `${sign}${digits}`, exponent: Number(exponent) - fraction.length + all.length - digits.length };
}

/** In linear time, however many zeros there are before other digits. */
function withoutZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
