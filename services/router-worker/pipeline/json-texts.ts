const FENCE = '```';
const CLOSER = { '{': '}', '[': ']' } as const;

/** A text that begins with a bracket. */
interface JsonText {
  /** Up to the last bracket of its kind; empty: it is not closed. */
  closed: string;
  /** Up to the end: closing brackets may be missing. */
  whole: string;
}

/** Where the JSON of a text may be, the most likely place first: inside a Markdown fence, else from the first bracket on. */
export function jsonTextsIn(text: string): JsonText[] {
  const fenced = inFence(text);
  return [...(fenced === null ? [] : bracketed(fenced)), ...bracketed(text)];
}

/** Null: there is none. One that is not closed reaches to the end. */
function inFence(text: string): string | null {
  const open = text.indexOf(FENCE);
  if (open === -1) return null;
  // The name of the language is on the line of the fence.
  const line = text.indexOf('\n', open);
  const start = line === -1 ? open + FENCE.length : line + 1;
  // The last one: texts of the JSON may contain fences.
  const close = text.lastIndexOf(FENCE);
  return text.slice(start, close > start ? close : undefined);
}

/** From the first bracket of each kind, in their order: a bracket of the prose may come before those of the JSON. */
function bracketed(text: string): JsonText[] {
  const starts = (['{', '['] as const).flatMap((bracket) => {
    const start = text.indexOf(bracket);
    return start === -1 ? [] : [{ bracket, start }];
  });
  return starts
    .sort((a, b) => a.start - b.start)
    .map(({ bracket, start }) => {
      const end = text.lastIndexOf(CLOSER[bracket]);
      return { closed: end > start ? text.slice(start, end + 1) : '', whole: text.slice(start).trimEnd() };
    });
}
