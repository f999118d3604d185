/**
 * Encoding of texts in Redis: as JSON when they contain lone surrogates, which UTF-8 can't represent. The prefix also separates values from
 * counters, which are plain decimals.
 */
const AS_IS = '=';
const AS_JSON = '"';

export function toRedis(text: string): string {
  return isWellFormed(text) ? AS_IS + text : JSON.stringify(text);
}

export function fromRedis(stored: string): string {
  if (stored.startsWith(AS_IS)) return stored.slice(AS_IS.length);
  if (!stored.startsWith(AS_JSON)) return stored; // a counter's decimal text
  const text: unknown = JSON.parse(stored);
  if (typeof text !== 'string') throw new TypeError('a value in Redis is none of ours');
  return text;
}

/** With the flag `u`, `\p{Surrogate}` matches only lone surrogates. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
