/** PostgreSQL reads no NUL and no half of a surrogate pair from JSON. */
const UNSTORED = /\0|\p{Surrogate}/gu;

/** A text of a caller as a record has it. @param most characters */
export function storedText(text: string, most: number): string {
  return text.slice(0, most).replaceAll(UNSTORED, '');
}
