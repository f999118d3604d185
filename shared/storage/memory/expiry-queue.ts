interface Entry {
  key: string;
  expiresAtMs: number;
}

/**
 * Keys by expiry, as a binary heap. An extended key is in it twice: the caller compares `expiresAtMs` with its own entry and skips the outdated
 * one.
 */
export class ExpiryQueue {
  #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** Null when empty. */
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

  /** Rebuilds the heap, for when most of it is outdated. */
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
