/**
 * Begins to open a store beside others, so that a start which can't succeed ends in the time of the slowest of them and not of all together.
 * @returns waits for it; a failure is for those that wait
 */
export function beside<Opened>(open: () => Promise<Opened>): () => Promise<Opened> {
  const opening = open();
  opening.catch(() => {});
  return () => opening;
}
