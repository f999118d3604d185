/** The same promise for every caller: `work` is called by the first. */
export function once<Value>(work: () => Promise<Value>): () => Promise<Value> {
  let begun: Promise<Value> | null = null;
  return () => {
    begun ??= work();
    return begun;
  };
}
