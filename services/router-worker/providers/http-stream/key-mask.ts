/** Longer keys are matched by this prefix and the rest of the word, to bound the pattern. */
const MAX_PATTERN_CHARS = 128;
/** Shorter keys occur in base64 by chance. */
const MIN_BASE64_KEY_CHARS = 3;
/** Each level of JSON in JSON doubles the backslashes; each percent-encoding of a percent sign adds `25`. */
const MAX_BACKSLASHES = 8;
const MAX_PERCENT_ROUNDS = 3;

const ESCAPE = `\\\\{1,${MAX_BACKSLASHES}}`;
const PERCENT = `%(?:25){0,${MAX_PERCENT_ROUNDS}}`;
/** Base64 and base64url; their `+ / - _ =` may be escaped or percent-encoded. No alternative is a prefix of another, so matching is linear. */
const BASE64_RUN = new RegExp(
  `(?:[A-Za-z0-9+/_-]|${ESCAPE}(?:/|u00(?:2[bBdDfF]|5[fF]))|${PERCENT}(?:2[bBdDfF]|5[fF]))+(?:=|${PERCENT}3[dD]|${ESCAPE}u003[dD]){0,2}`,
  'g',
);
const ESCAPED_UNIT = new RegExp(`(?:${ESCAPE}u00|${PERCENT})([2-5][0-9a-fA-F])|\\\\`, 'g');

/**
 * Masks a key in text: verbatim, percent-encoded, JSON-escaped, per character, and in base64 at any offset, where the whole run is masked. Linear in the text.
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

/** The base64 may begin anywhere in a run, as after a `/` of a path, so all four alignments are decoded. */
function holdsKey(run: string, key: RegExp): boolean {
  const plain = run.replace(ESCAPED_UNIT, (_, hex: string | undefined) => (hex === undefined ? '' : String.fromCharCode(Number.parseInt(hex, 16))));
  return [0, 1, 2, 3].some((start) => key.test(Buffer.from(plain.slice(start), 'base64').toString('utf8')));
}

function patternOf(key: string): string {
  const head = [...key].slice(0, MAX_PATTERN_CHARS);
  const rest = head.join('').length < key.length ? '[^\\s"\'<>,;]*' : '';
  // A run of backslashes is one unit: escaping each separately would backtrack exponentially.
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
