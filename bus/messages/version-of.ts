/** The message's `v`; null without one. A version that this release doesn't know is left to a consumer that does. */
export function versionOf(body: unknown): number | null {
  return typeof body === 'object' && body !== null && 'v' in body && typeof body.v === 'number' ? body.v : null;
}
