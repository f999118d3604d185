/**
 * PostgreSQL's text holds every character but U+0000, and one such body would fail the whole statement that it shares with
 * others. U+0001 escapes it, and itself. JSON texts hold neither, so nearly every text is stored as it is.
 */
export function toStoredText(text: string): string {
  if (!text.includes('\u0000') && !text.includes('\u0001')) return text;
  return text.replaceAll('\u0001', '\u00011').replaceAll('\u0000', '\u00010');
}

/** The text that `toStoredText` was given. */
export function fromStoredText(stored: string): string {
  if (!stored.includes('\u0001')) return stored;
  // Each U+0001 begins an escape, so neither replacement can meet what the other one made.
  return stored.replaceAll('\u00010', '\u0000').replaceAll('\u00011', '\u0001');
}
