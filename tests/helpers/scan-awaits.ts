/** One thing that a file does, in the order in which it stands there. */
export type Place =
  /** The text from `await`, `for await` or `.then(` on, up to the end of its line or the next of its kind. */
  { kind: 'await'; text: string; line: number } | { kind: 'point'; name: string; line: number };

const PLACES = /\bfor\s+await\b|\bawait\b|\.then\(|\bfailPoint\('([^']*)'\)/g;

/** Finds every place at which a file waits, and every fail point. Comments do not count. */
export function scanAwaits(source: string): Place[] {
  return withoutComments(source)
    .split('\n')
    .flatMap((text, index) => placesIn(text, index + 1));
}

function placesIn(text: string, line: number): Place[] {
  const found = [...text.matchAll(PLACES)];
  return found.map((match, at) => {
    const [, name] = match;
    if (name !== undefined) return { kind: 'point', name, line };
    return { kind: 'await', text: text.slice(match.index, found[at + 1]?.index).trim(), line };
  });
}

/** The lines stay where they are. In a text `//` follows a colon. */
function withoutComments(source: string): string {
  return source.replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' ')).replaceAll(/(?<!:)\/\/[^\n]*/g, '');
}
