/** Fewer digits are below 2^53. */
const LONG = /\d{16}/;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;
/** More exceed all doubles. */
const MAX_DIGITS = 310;

/**
 * The first integer that parsing changes: there is no double of its value, and what is written for the nearest one is another text. Null: there is none.
 * @param json valid JSON
 */
export function inexactInteger(json: string): string | null {
  if (!LONG.test(json)) return null;
  for (const [token] of json.matchAll(TOKEN)) if (INTEGER.test(token) && !isExact(token)) return token.slice(0, MAX_DIGITS);
  return null;
}

/** The same JSON with each integer that parsing would change as a string of its digits. @param json valid JSON */
export function quoteInexactIntegers(json: string): string {
  if (!LONG.test(json)) return json;
  return json.replace(TOKEN, (token) => (INTEGER.test(token) && !isExact(token) ? `"${token}"` : token));
}

function isExact(integer: string): boolean {
  if (integer.length > MAX_DIGITS) return false;
  const read = Number(integer);
  return Number.isFinite(read) && (String(read) === integer || BigInt(read) === BigInt(integer));
}
