/** Needs no quotes in any shell. */
const PLAIN_WORD = /^[\w./@:+-]+$/;

/** A text as one word of a command that is pasted into a shell. */
export function shellWord(text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
