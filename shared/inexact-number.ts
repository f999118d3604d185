/** Fewer digits are below 2^53. */
const LONG = /\d{16}/;
/** Of numbers that exceed all doubles, with fewer digits. */
const LARGE_EXPONENT = /[eE]\+?\d{3}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;
/** More exceed all doubles. */
const MAX_DIGITS = 310;

/**
 * The first integer that parsing changes, or number that exceeds all doubles. Of an integer: there is no double of its value, and what is written for the nearest one is another text. Cut with an ellipsis after 310 characters. Null: there is none.
 * @param json valid JSON
 */
export function inexactNumber(json: string): string | null {
  if (!LONG.test(json) && !LARGE_EXPONENT.test(json)) return null;
  for (const [token] of json.matchAll(TOKEN))
    if (INTEGER.test(token) ? !isExact(token) : isInfinite(token)) return token.length > MAX_DIGITS ? `${token.slice(0, MAX_DIGITS)}…` : token;
  return null;
}

/** The same JSON with each integer that parsing would change as a string of its digits. @param json valid JSON */
export function quoteInexactIntegers(json: string): string {
  if (!LONG.test(json)) return json;
  return json.replace(TOKEN, (token) => (INTEGER.test(token) && !isExact(token) ? `"${token}"` : token));
}

function isInfinite(token: string): boolean {
  return !token.startsWith('"') && !Number.isFinite(Number(token));
}

function isExact(integer: string): boolean {
  if (integer.length > MAX_DIGITS) return false;
  const read = Number(integer);
  return Number.isFinite(read) && (String(read) === integer || BigInt(read) === BigInt(integer));
}
