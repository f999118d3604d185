/**
 * A Map with strings for keys, for what comes and goes with every request. A Map grows and shrinks by moving to a new table, and in V8 each
 * table that it has left refers to the next one. Once one of them is old, all that follow it, and what was in them when they were left, is
 * kept until the next collection of the whole heap: old space fills with requests that are over. On a busy router worker that was a third
 * of what was kept so. An object in dictionary mode, which is what one without a prototype is from the start, refers to nothing that it has
 * left.
 *
 * For what stays, and where the order of keys matters, a Map is right.
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

  /** @returns false when there was none */
  delete(key: string): boolean {
    if (!(key in this.#values)) return false;
    this.#size -= 1;
    return delete this.#values[key];
  }

  /** As they are now: what comes or goes while they are gone through changes nothing. */
  values(): Value[] {
    return Object.values(this.#values);
  }
}
