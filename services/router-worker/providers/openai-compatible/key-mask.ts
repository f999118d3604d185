/** So much of a key is searched for, and the rest of the word goes with it: a pattern of a longer one costs more than it tells apart. */
const MAX_PATTERN_CHARS = 128;
/** Shorter ones stand in any base64 by chance. */
const MIN_BASE64_KEY_CHARS = 3;
/** Each JSON text in a JSON text doubles the backslashes, and each encoding of a percent sign adds `25`. */
const MAX_BACKSLASHES = 8;
const MAX_PERCENT_ROUNDS = 3;

const ESCAPE = `\\\\{1,${MAX_BACKSLASHES}}`;
const PERCENT = `%(?:25){0,${MAX_PERCENT_ROUNDS}}`;
/** Base64, also in its URL-safe form, whose `+ / - _ =` may themselves be escaped or percent-encoded. No unit begins another, so this is linear. */
const BASE64_RUN = new RegExp(
  `(?:[A-Za-z0-9+/_-]|${ESCAPE}(?:/|u00(?:2[bBdDfF]|5[fF]))|${PERCENT}(?:2[bBdDfF]|5[fF]))+(?:=|${PERCENT}3[dD]|${ESCAPE}u003[dD]){0,2}`,
  'g',
);
const ESCAPED_UNIT = new RegExp(`(?:${ESCAPE}u00|${PERCENT})([2-5][0-9a-fA-F])|\\\\`, 'g');

/**
 * Replaces a key in texts that quote it: as it is, percent-encoded, with JSON escapes, character by character, and within base64 at any
 * place. A piece of base64 that holds the key is replaced whole. Costs a few steps for each character of a text.
 *
 * @param key not empty
 */
export function keyMask(key: string, mask: string): (text: string) => string {
  const pattern = patternOf(key);
  const whole = new RegExp(pattern, 'g');
  const inside = new RegExp(pattern);
  const fewestChars = key.length < MIN_BASE64_KEY_CHARS ? Number.POSITIVE_INFINITY : Math.ceil((Buffer.byteLength(key) * 4) / 3);
  return (text) => text.replace(whole, mask).replace(BASE64_RUN, (run) => (run.length >= fewestChars && holdsKey(run, inside) ? mask : run));
}

/** Base64 may begin at any character of a run: after a word, or a `/` that belongs to a path. */
function holdsKey(run: string, key: RegExp): boolean {
  const plain = run.replace(ESCAPED_UNIT, (_, hex: string | undefined) => (hex === undefined ? '' : String.fromCharCode(Number.parseInt(hex, 16))));
  return [0, 1, 2, 3].some((start) => key.test(Buffer.from(plain.slice(start), 'base64').toString('utf8')));
}

function patternOf(key: string): string {
  const head = [...key].slice(0, MAX_PATTERN_CHARS);
  const rest = head.join('').length < key.length ? '[^\\s"\'<>,;]*' : '';
  // Backslashes in a row are one unit: each of them escaped on its own could be matched in very many ways.
  const units = head.join('').match(/\\+|[^\\]/gu) ?? [];
  return units.map(unitPattern).join('') + rest;
}

function unitPattern(unit: string): string {
  if (unit.startsWith('\\')) return `(?:\\\\{${unit.length},${unit.length * MAX_BACKSLASHES}}|(?:${PERCENT}5[cC]){${unit.length}})`;
  const bytes = [...Buffer.from(unit)].map((byte) => PERCENT + hexPattern(byte, 2)).join('');
  const escapes = Array.from({ length: unit.length }, (_, at) => `${ESCAPE}u${hexPattern(unit.charCodeAt(at), 4)}`).join('');
  return `(?:\\\\{0,${MAX_BACKSLASHES}}${literal(unit)}|${bytes}|${escapes})`;
}

function hexPattern(value: number, digits: number): string {
  const hex = value.toString(16).padStart(digits, '0');
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
