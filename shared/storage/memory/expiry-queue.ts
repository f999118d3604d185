interface Turn {
  key: string;
  expiresAtMs: number;
}

/**
 * Keys in the order in which they expire: a binary heap. A key that is entered again, because it lives longer now, stands in it twice;
 * whoever takes one out compares its instant with the entry's own, and the outdated one means nothing.
 */
export class ExpiryQueue {
  #heap: Turn[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The next to expire, left where it is; null when there is none. */
  first(): Turn | null {
    return this.#heap[0] ?? null;
  }

  add(turn: Turn): void {
    const heap = this.#heap;
    let place = heap.push(turn) - 1;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = heap[parentPlace];
      if (parent === undefined || parent.expiresAtMs <= turn.expiresAtMs) break;
      heap[place] = parent;
      place = parentPlace;
    }
    heap[place] = turn;
  }

  removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      const childPlace = this.#soonerChild(place);
      const child = heap[childPlace];
      if (child === undefined || child.expiresAtMs >= last.expiresAtMs) break;
      heap[place] = child;
      place = childPlace;
    }
    heap[place] = last;
  }

  /** Drops every outdated turn at once: for when most of them are. */
  keepOnly(turns: Iterable<Turn>): void {
    // A sorted array is a heap.
    this.#heap = [...turns].sort((a, b) => a.expiresAtMs - b.expiresAtMs);
  }

  #soonerChild(place: number): number {
    const left = this.#heap[2 * place + 1];
    const right = this.#heap[2 * place + 2];
    return left !== undefined && right !== undefined && right.expiresAtMs < left.expiresAtMs ? 2 * place + 2 : 2 * place + 1;
  }
}
