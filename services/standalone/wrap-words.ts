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
  return lines.map((line, index) => (index === 0 ? line : `${' '.repeat(indent)}${line}`)).join('\n');
}

/** Lines of a message for a terminal: what a line begins with is kept, and where it is continued two columns more. */
export function wrapLines(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const first = line.length - line.trimStart().length;
      return `${line.slice(0, first)}${wrapWords(line.slice(first), { indent: first + 2, first })}`;
    })
    .join('\n');
}
