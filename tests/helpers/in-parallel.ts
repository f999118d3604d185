/** Runs the work for each item with bounded concurrency. @throws the first failure, at once */
export async function inParallel<Item>(items: Iterable<Item>, atOnce: number, work: (item: Item) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  const worker = async () => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
