/** A key by the hash of its secret, in the router's file and in calls of actors. Group 1 is the hash. */
const KEY_REFERENCE = /^sha256:([0-9a-f]{64})$/;

export function keyReferenceOf(hash: string): string {
  return `sha256:${hash}`;
}

/** The hash; null: the text is no such reference. */
export function hashInReference(text: string): string | null {
  return KEY_REFERENCE.exec(text)?.[1] ?? null;
}
