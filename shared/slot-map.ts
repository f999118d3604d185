/**
 * A Set for what comes and goes with every request. Each value has a place of its own, which is its handle, and places are used again: no
 * table is ever left behind, as a Set leaves them (see `Dictionary`).
 */
export class Slab<Value> {
  readonly #places: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** @returns its place, until it is removed */
  add(value: Value): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = value;
    return place;
  }

  /** Undefined when nothing is there, or never was. */
  get(place: number): Value | undefined {
    return this.#places[place];
  }

  /** To be called once for each that was added: its place is somebody else's from then on. */
  remove(place: number): void {
    this.#places[place] = undefined;
    this.#free.push(place);
  }

  /** As they are now: what comes or goes while they are gone through changes nothing. */
  values(): Value[] {
    return this.#places.filter((value) => value !== undefined);
  }
}
