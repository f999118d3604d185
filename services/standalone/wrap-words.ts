/** A terminal's usual width. */
export const COLUMNS = 80;

/** Text as lines for a terminal, every one but the first indented; a word that is wider than a line has one of its own. */
export function wrapWords(text: string, { indent, first = indent }: { indent: number; first?: number }): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    const before = lines.length === 1 ? first : indent;
    if (last === undefined || before + last.length + 1 + word.length > COLUMNS) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line, place) => (place === 0 ? line : `${' '.repeat(indent)}${line}`)).join('\n');
}
