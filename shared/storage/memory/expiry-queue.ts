interface Entry {
  key: string;
  expiresAtMs: number;
}

/**
 * Keys in the order in which they expire: a binary heap. A key that is entered again, because it lives longer now, stands in it twice;
 * whoever takes one out compares its instant with the entry's own, and the outdated one means nothing.
 */
export class ExpiryQueue {
  #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The next to expire, left where it is; null when there is none. */
  first(): Entry | null {
    return this.#heap[0] ?? null;
  }

  add(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || parent.expiresAtMs <= entry.expiresAtMs) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = entry;
  }

  removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const childIndex = this.#soonerChild(index);
      const child = heap[childIndex];
      if (child === undefined || child.expiresAtMs >= last.expiresAtMs) break;
      heap[index] = child;
      index = childIndex;
    }
    heap[index] = last;
  }

  /** Drops every outdated turn at once: for when most of them are. */
  retainOnly(entries: Iterable<Entry>): void {
    // A sorted array is a heap.
    this.#heap = [...entries].sort((a, b) => a.expiresAtMs - b.expiresAtMs);
  }

  #soonerChild(index: number): number {
    const left = this.#heap[2 * index + 1];
    const right = this.#heap[2 * index + 2];
    return left !== undefined && right !== undefined && right.expiresAtMs < left.expiresAtMs ? 2 * index + 2 : 2 * index + 1;
  }
}
