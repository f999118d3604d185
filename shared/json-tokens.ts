interface JsonToken {
  text: string;
  index: number;
}

/**
 * The strings of a JSON text, each with its quotes, and what `pattern` matches outside of them. In linear time for any text, and without recursion: a regular
 * expression for a string overflows the stack at some millions of escapes, and reads one without an end again from each of its quotes.
 * @param pattern global; matches `"`, and nothing else that contains one
 */
export function* jsonTokens(json: string, pattern: RegExp): Generator<JsonToken, void> {
  const next = new RegExp(pattern);
  for (let match = next.exec(json); match !== null; match = next.exec(json)) {
    const { 0: text, index } = match;
    if (text !== '"') yield { text, index };
    else {
      next.lastIndex = endOfString(json, index);
      yield { text: json.slice(index, next.lastIndex), index };
    }
  }
}

/** Behind its closing quote; of a string without one, the end of the text. */
export function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let unescaped = quote;
    while (json[unescaped - 1] === '\\') unescaped -= 1;
    if ((quote - unescaped) % 2 === 0) return quote + 1;
  }
  return json.length;
}
