/**
 * Escapes U+0000, which PostgreSQL's text can't hold, and which would fail its whole batch. U+0001 is the escape, itself escaped. JSON has neither, so most
 * texts are stored unchanged.
 */
export function toStoredText(text: string): string {
  if (!text.includes('\u0000') && !text.includes('\u0001')) return text;
  return text.replaceAll('\u0001', '\u00011').replaceAll('\u0000', '\u00010');
}

export function fromStoredText(stored: string): string {
  if (!stored.includes('\u0001')) return stored;
  // Each U+0001 begins an escape: neither replacement can match the other's result.
  return stored.replaceAll('\u00010', '\u0000').replaceAll('\u00011', '\u0001');
}
