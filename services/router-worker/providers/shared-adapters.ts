import type { OpenedAdapter } from './provider.ts';

interface Shared {
  adapter: OpenedAdapter;
  users: number;
}

/**
 * Adapters that are open, by what they were opened with. Configurations that have the same provider share its adapter, so that a reload closes none of its
 * connections; the last one that has it closes it.
 */
export class SharedAdapters {
  readonly #open = new Map<string, Shared>();

  get count(): number {
    return this.#open.size;
  }

  acquire(key: string, open: () => OpenedAdapter): OpenedAdapter {
    const shared = this.#open.get(key) ?? { adapter: open(), users: 0 };
    shared.users += 1;
    this.#open.set(key, shared);
    return shared.adapter;
  }

  /** Once for each `acquire`. */
  async release(key: string): Promise<void> {
    const shared = this.#open.get(key);
    if (shared === undefined) return;
    shared.users -= 1;
    if (shared.users > 0) return;
    this.#open.delete(key);
    await shared.adapter.close();
  }
}
