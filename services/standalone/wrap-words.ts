export const COLUMNS = 80;

/** Wraps text at COLUMNS, indenting all lines but the first; a longer word gets its own line. */
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

/** Wraps each line with its indentation; continuations are indented by two more. */
export function wrapLines(text: string): string {
  return text
    .split('\n')
    .map((line) => {
      const first = line.length - line.trimStart().length;
      return `${line.slice(0, first)}${wrapWords(line.slice(first), { indent: first + 2, first })}`;
    })
    .join('\n');
}
