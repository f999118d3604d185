/** RFC 3339, in UTC. */
export function instant(atMs: number): string {
  return new Date(atMs).toISOString();
}
