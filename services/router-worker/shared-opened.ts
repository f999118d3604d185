interface Closable {
  close(): Promise<void>;
}

/**
 * What is open, by what it was opened with. Configurations that have the same block share its adapter or engine, so that a reload closes none of its
 * connections; the last one that has it closes it.
 */
export class SharedOpened<Opened extends Closable> {
  readonly #open = new Map<string, { opened: Opened; users: number }>();

  get count(): number {
    return this.#open.size;
  }

  acquire(key: string, open: () => Opened): Opened {
    const shared = this.#open.get(key) ?? { opened: open(), users: 0 };
    shared.users += 1;
    this.#open.set(key, shared);
    return shared.opened;
  }

  /** Once for each `acquire`. */
  async release(key: string): Promise<void> {
    const shared = this.#open.get(key);
    if (shared === undefined) return;
    shared.users -= 1;
    if (shared.users > 0) return;
    this.#open.delete(key);
    await shared.opened.close();
  }
}
