/**
 * A map with string keys for entries that come and go with every request. A V8 `Map` grows and shrinks by moving to a new table, and each old table
 * refers to the next. Once one of them is in the old generation, all later ones with their former contents are kept until the next full collection:
 * on a busy router worker that was a third of the memory so retained. An object without a prototype is in dictionary mode from the start and keeps
 * no old tables.
 *
 * Use a Map for long-lived entries, and where the order of keys matters.
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

  /** @returns false when absent */
  delete(key: string): boolean {
    if (!(key in this.#values)) return false;
    this.#size -= 1;
    return delete this.#values[key];
  }

  /** A copy: changes during iteration do not affect it. */
  values(): Value[] {
    return Object.values(this.#values);
  }
}
