/** Characters that JSON does not escape. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

/** The JSON of a text, at a fraction of what `JSON.stringify` costs for one without escapes. */
export function quoted(text: string | null): string {
  if (text === null) return 'null';
  return UNESCAPED.test(text) ? `"${text}"` : JSON.stringify(text);
}
