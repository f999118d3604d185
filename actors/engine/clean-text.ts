/**
 * Characters that may hide instructions or break out of the delimiters around a text: controls except tab and line feed, bidirectional overrides,
 * zero-width characters, tag characters, lone surrogates.
 */
const HIDDEN = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u{e0000}-\u{e007f}\p{Cs}]/gu;

/** Joiners are part of the spelling in some scripts and in emoji. Between other characters they are invisible separators. */
const STRAY_JOINER = /(?<![\p{Lo}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d]|[\u200c\u200d](?![\p{Lo}\p{M}\p{Extended_Pictographic}])/gu;

/** Untrusted text as a model may see it: without invisible characters, in normal form C, otherwise unchanged. */
export function cleanText(text: string): string {
  return text.replace(HIDDEN, '').replace(STRAY_JOINER, '').normalize('NFC');
}

/** A value as JSON for a model: key order is kept, strings are cleaned. */
export function cleanJson(value: unknown): string {
  // Keys are cleaned in the finished JSON, where control characters are harmless escapes.
  return cleanText(JSON.stringify(value ?? null, (_, inner: unknown) => (typeof inner === 'string' ? cleanText(inner) : inner)));
}
