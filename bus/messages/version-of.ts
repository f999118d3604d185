/** The message's `v`; null without one. An unknown version is left to a consumer that knows it. */
export function versionOf(body: unknown): number | null {
  return typeof body === 'object' && body !== null && 'v' in body && typeof body.v === 'number' ? body.v : null;
}
