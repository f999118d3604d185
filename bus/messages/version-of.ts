/** The version that a message says it is of, null when it says none. One that we do not know is left for a consumer that does. */
export function versionOf(body: unknown): number | null {
  return typeof body === 'object' && body !== null && 'v' in body && typeof body.v === 'number' ? body.v : null;
}
