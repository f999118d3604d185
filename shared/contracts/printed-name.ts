/** Enough to recognise a name by. */
const MAX_NAME_CHARS = 100;
const PLAIN = new RegExp(`^[\\p{L}\\p{N}_$:-]{1,${MAX_NAME_CHARS}}$`, 'u');
/** Characters that move the cursor, begin a line, change the direction of text, or show nothing. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** A name from outside in quotes, as an error or a warning prints it: it can write no line of its own, whatever stands in it. */
export function quotedName(name: string): string {
  const shown = name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name;
  return escapeUnprintable(JSON.stringify(shown));
}

/** The same without quotes where it is a plain word: letters, digits, `_`, `$`, `:` and `-`. */
export function printedName(name: string): string {
  return PLAIN.test(name) ? name : quotedName(name);
}

/** A text with everything that does not print written as `\u001b`. */
export function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => [...Array(character.length).keys()].map((at) => escaped(character.charCodeAt(at))).join(''));
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
