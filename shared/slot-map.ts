/**
 * A set for values that come and go with every request. Each value has a slot, which is its handle; free slots are reused, so no old tables are
 * retained as by a `Set` (see `ObjectMap`).
 */
export class SlotMap<Value> {
  readonly #slots: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** @returns the slot, valid until `remove` */
  add(value: Value): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = value;
    return slot;
  }

  /** Undefined for a free slot. */
  get(slot: number): Value | undefined {
    return this.#slots[slot];
  }

  /** Call it once per added value: the slot is reused afterwards. */
  remove(slot: number): void {
    this.#slots[slot] = undefined;
    this.#free.push(slot);
  }

  /** A copy: changes during iteration do not affect it. */
  values(): Value[] {
    return this.#slots.filter((value) => value !== undefined);
  }
}
