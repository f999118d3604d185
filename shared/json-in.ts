/** Parses JSON; null when invalid, as for the text `null`, which schemas refuse as well. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
