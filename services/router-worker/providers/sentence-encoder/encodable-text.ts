/** Some 400 words, and more than a paragraph has. The time of a text grows faster than its length. */
export const MAX_TEXT_CHARS = 2_000;

/** What is encoded of a text: its beginning, as the model normalises it, which may lengthen it; never nothing, of which the model makes no vector. */
export function encodableText(text: string): string {
  const normalised = text.slice(0, MAX_TEXT_CHARS).normalize('NFKC').slice(0, MAX_TEXT_CHARS);
  return normalised === '' ? ' ' : normalised;
}
