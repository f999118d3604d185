/** Older servers count a message that is published twice otherwise after they were started again, and lose messages of work queues (docs/adr/0124). */
const SINCE = [2, 10, 14] as const;

/** @param version of a server, as `2.9.10`; absent or of another form: not known to be too old @returns whether three brokers may lose messages with it */
export function isTooOldForReplicas(version: string | undefined): boolean {
  const [major, minor, patch] = (version ?? '').split(/[.-]/).map(Number);
  if (major === undefined || minor === undefined || patch === undefined || [major, minor, patch].some(Number.isNaN)) return false;
  const differing = [major - SINCE[0], minor - SINCE[1], patch - SINCE[2]].find((difference) => difference !== 0);
  return differing !== undefined && differing < 0;
}
