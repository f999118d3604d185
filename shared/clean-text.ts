/** Invisible or able to break out of delimiters: controls except tab and line feed, bidi overrides, zero-width, tags, lone surrogates. */
const HIDDEN = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u{e0000}-\u{e007f}\p{Cs}]/gu;

/** Joiners belong to the spelling of some scripts and emoji; elsewhere they are invisible separators. */
const STRAY_JOINER = /(?<![\p{Lo}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d]|[\u200c\u200d](?![\p{Lo}\p{M}\p{Extended_Pictographic}])/gu;

/** Untrusted text as a model may see it: invisible characters removed, normal form C. */
export function cleanText(text: string): string {
  return text.replace(HIDDEN, '').replace(STRAY_JOINER, '').normalize('NFC');
}

/** In JSON. `JSON.stringify` writes `u` for control characters and lone surrogates alone. */
const ESCAPE = /\\(u[0-9a-f]{4}|.)/g;
const HIDDEN_ESCAPE = /^[ubfr]/;
const BETWEEN_ESCAPES = /\\.|[^\\]+/g;

/** A value as JSON for a model: key order kept, keys and strings cleaned. Keys that are equal then stand there twice. */
export function cleanJson(value: unknown): string {
  const json = JSON.stringify(value ?? null, (_, inner: unknown) => (typeof inner === 'string' ? cleanText(inner) : inner));
  // Those of strings are removed already: what is left is in keys.
  const shown = json.replace(ESCAPE, (whole, what: string) => (HIDDEN_ESCAPE.test(what) ? '' : whole));
  // An escape stays as it is: the `n` of a line feed and a mark behind it would become one letter.
  return shown.replace(BETWEEN_ESCAPES, (part) => (part.startsWith('\\') ? part : cleanText(part)));
}
