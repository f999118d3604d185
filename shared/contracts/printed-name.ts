const MAX_NAME_CHARS = 100;
const PLAIN = new RegExp(`^[\\p{L}\\p{N}_$:-]{1,${MAX_NAME_CHARS}}$`, 'u');
/** Control characters, line breaks, direction marks, and other invisible characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Quotes an untrusted name for an error or warning: it can't inject a line, whatever it contains. */
export function quotedName(name: string): string {
  const shown = name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name;
  return escapeUnprintable(JSON.stringify(shown));
}

/** Quotes a name unless it is a plain word: letters, digits, `_`, `$`, `:` and `-`. */
export function printedName(name: string): string {
  return PLAIN.test(name) ? name : quotedName(name);
}

/** Escapes unprintable characters as `\u001b`. */
export function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => [...Array(character.length).keys()].map((at) => escaped(character.charCodeAt(at))).join(''));
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
