/**
 * A Set for what comes and goes with every request. Each value has a place of its own, which is its handle, and places are used again: no
 * table is ever left behind, as a Set leaves them (see `ObjectMap`).
 */
export class SlotMap<Value> {
  readonly #slots: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** @returns its place, until it is removed */
  add(value: Value): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = value;
    return slot;
  }

  /** Undefined when nothing is there, or never was. */
  get(slot: number): Value | undefined {
    return this.#slots[slot];
  }

  /** To be called once for each that was added: its place is somebody else's from then on. */
  remove(slot: number): void {
    this.#slots[slot] = undefined;
    this.#free.push(slot);
  }

  /** As they are now: what comes or goes while they are gone through changes nothing. */
  values(): Value[] {
    return this.#slots.filter((value) => value !== undefined);
  }
}
