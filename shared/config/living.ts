/** A value that is replaced as a whole while the process runs. What belongs together is read from one `current()`. */
export interface Living<T> {
  current(): T;
  /** @param listener called once all values that derive from this one are replaced too; must not throw. @returns unregisters it */
  onChange(listener: (next: T) => void): () => void;
  /**
   * A value that is made from this one: now, and for each later one before that is current. Where `make` throws, `replace` throws, and nothing is replaced.
   * @param discard gets what was made for a value that another `make` has refused
   * @throws what `make` throws for the current value
   */
  derive<U>(make: (value: T) => U, discard?: (made: U) => void): Living<U>;
}

/** What a replacement has made, and not applied yet. */
interface Prepared {
  apply(): void;
  notify(): void;
  discard(): void;
}

export class LivingValue<T> implements Living<T> {
  #current: T;
  readonly #listeners = new Set<(next: T) => void>();
  readonly #derived: ((next: T) => Prepared)[] = [];

  constructor(value: T) {
    this.#current = value;
  }

  current(): T {
    return this.#current;
  }

  onChange(listener: (next: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  derive<U>(make: (value: T) => U, discard: (made: U) => void = () => {}): Living<U> {
    const derived = new LivingValue(make(this.#current));
    this.#derived.push((next) => derived.#prepare(make(next), discard));
    return derived;
  }

  /** @throws what a `make` of a derived value throws: then neither this value nor a derived one has changed */
  replace(next: T): void {
    const prepared = this.#prepare(next, () => {});
    prepared.apply();
    prepared.notify();
  }

  #prepare(next: T, discard: (made: T) => void): Prepared {
    const prepared: Prepared[] = [];
    const discardAll = () => {
      for (const one of prepared) one.discard();
      discard(next);
    };
    try {
      for (const prepare of this.#derived) prepared.push(prepare(next));
    } catch (error) {
      discardAll();
      throw error;
    }
    return {
      apply: () => {
        this.#current = next;
        for (const one of prepared) one.apply();
      },
      notify: () => {
        for (const one of prepared) one.notify();
        for (const listener of this.#listeners) listener(next);
      },
      discard: discardAll,
    };
  }
}

/** One that never changes. */
export function fixed<T>(value: T): Living<T> {
  return new LivingValue(value);
}

/** What a caller gives where it may be one that never changes. */
export type Given<T> = T | Living<T>;

export function livingOf<T>(given: Given<T>): Living<T> {
  return given instanceof LivingValue ? given : fixed(given as T);
}
