import { Changes } from '../changes.ts';
import { errorOf } from './error-of.ts';
import { mergeFirstPage } from './merge-first-page.ts';

export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** A list that the server gives in pages, newest first: as far as it was scrolled to. */
export class PagedList<Item> {
  readonly changes = new Changes();
  items: Item[] = [];
  /** Of the last request; null: it succeeded. */
  failure: Error | null = null;
  isLoading = false;
  /** Undefined: nothing is loaded; null: everything. */
  #next: string | null | undefined;
  /** Of the present filter: an answer of another one is dropped. */
  #generation = 0;
  /** Of all items. */
  #keys = new Set<string>();
  readonly #keyOf: (item: Item) => string;
  #load: (cursor: string | undefined) => Promise<Page<Item>>;

  constructor(keyOf: (item: Item) => string, load: (cursor: string | undefined) => Promise<Page<Item>>) {
    this.#keyOf = keyOf;
    this.#load = load;
  }

  get hasMore(): boolean {
    return this.#next !== null;
  }

  /** Begins again, with another filter. */
  reset(load: (cursor: string | undefined) => Promise<Page<Item>>): void {
    this.#load = load;
    this.#generation += 1;
    this.#next = undefined;
    this.items = [];
    this.#keys.clear();
    this.isLoading = false;
    void this.more();
  }

  /** The next page, unless one is on its way. */
  async more(): Promise<void> {
    if (this.isLoading || this.#next === null) return;
    this.isLoading = true;
    await this.#request(this.#next, (page) => {
      // The array stays the same: a list of many thousands is not copied for each page.
      for (const item of page.items) if (!this.#keys.has(this.#keyOf(item))) this.append(item);
      this.#next = page.next_cursor;
    });
    this.isLoading = false;
    this.changes.emit();
  }

  /** Changed items of the first page take the place of the old ones, new ones come first. */
  async refresh(): Promise<void> {
    if (this.#next === undefined) return this.more();
    if (this.isLoading) return;
    await this.#request(undefined, (page) => {
      for (const item of mergeFirstPage(this.items, page.items, this.#keyOf, (key) => this.#keys.has(key))) this.#keys.add(this.#keyOf(item));
    });
    this.changes.emit();
  }

  /** At the end, of a list that grows there. */
  append(item: Item): void {
    this.#keys.add(this.#keyOf(item));
    this.items.push(item);
    this.changes.emit();
  }

  remove(key: string): void {
    this.#keys.delete(key);
    this.items = this.items.filter((item) => this.#keyOf(item) !== key);
    this.changes.emit();
  }

  async #request(cursor: string | undefined, apply: (page: Page<Item>) => void): Promise<void> {
    const generation = this.#generation;
    try {
      const page = await this.#load(cursor);
      if (generation !== this.#generation) return;
      apply(page);
      this.failure = null;
    } catch (error) {
      if (generation === this.#generation) this.failure = errorOf(error);
    }
  }
}
