/**
 * A map with string keys for entries that come and go with every request. A V8 `Map` moves to a new table when it grows or shrinks, and each old
 * table refers to the next: once one is in the old generation, all later ones with their former contents stay until the next full collection. On a
 * busy router worker that was a third of the memory so retained. An object without a prototype is in dictionary mode and keeps no old tables.
 *
 * Use a Map for entries that stay, and where the order of keys matters.
 */
export class ObjectMap<Value> {
  readonly #values: Record<string, Value> = Object.create(null);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): Value | undefined {
    return this.#values[key];
  }

  has(key: string): boolean {
    return key in this.#values;
  }

  set(key: string, value: Value): void {
    if (!(key in this.#values)) this.#size += 1;
    this.#values[key] = value;
  }

  delete(key: string): boolean {
    if (!(key in this.#values)) return false;
    this.#size -= 1;
    return delete this.#values[key];
  }

  /** A copy: later changes do not affect it. */
  values(): Value[] {
    return Object.values(this.#values);
  }
}
