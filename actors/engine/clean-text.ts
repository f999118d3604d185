/** What may hide instructions or break the frame around a text: controls but tab and line feed, changes of direction, tags, halves of pairs. */
const HIDDEN = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u{e0000}-\u{e007f}\p{Cs}]/gu;

/** Joiners are spelling in some scripts and in emoji. Between other characters they are separators that nobody sees. */
const STRAY_JOINER = /(?<![\p{Lo}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d]|[\u200c\u200d](?![\p{Lo}\p{M}\p{Extended_Pictographic}])/gu;

/**
 * A text from outside as a model may see it: the same characters but for those that nobody sees, in normal form C. Nothing is paraphrased
 * and no word is left out.
 */
export function cleanText(text: string): string {
  return text.replace(HIDDEN, '').replace(STRAY_JOINER, '').normalize('NFC');
}

/** A value as JSON for a model: keys in the order in which they stand, texts cleaned. */
export function cleanJson(value: unknown): string {
  // Keys are cleaned in the finished JSON, where control characters are escapes and do no harm.
  return cleanText(JSON.stringify(value ?? null, (_, inner: unknown) => (typeof inner === 'string' ? cleanText(inner) : inner)));
}
