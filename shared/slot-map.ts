/**
 * A set for values that come and go with every request. A value's slot is its handle; slots are reused, so no old tables are retained as by a `Set`
 * (see `ObjectMap`).
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

  /** Once per added value: the slot is reused. */
  remove(slot: number): void {
    this.#slots[slot] = undefined;
    this.#free.push(slot);
  }

  /** A copy: later changes do not affect it. */
  values(): Value[] {
    return this.#slots.filter((value) => value !== undefined);
  }
}
