/** What a text says as JSON; null when it is none, as when it says `null`: a schema refuses both. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
