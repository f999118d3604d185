/** Parses JSON; null when invalid, as for the text `null`: schemas refuse both. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
