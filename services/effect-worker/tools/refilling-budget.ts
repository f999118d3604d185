/** A token bucket: `capacity` at once, then `perSecond`. */
export class RefillingBudget {
  readonly #capacity: number;
  readonly #perSecond: number;
  readonly #nowMs: () => number;
  #left: number;
  #refilledAtMs: number;

  /** @param nowMs may go back; such a step refills nothing */
  constructor({ capacity, perSecond, nowMs }: { capacity: number; perSecond: number; nowMs: () => number }) {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#nowMs = nowMs;
    this.#left = capacity;
    this.#refilledAtMs = nowMs();
  }

  /** @returns whether so much was left; it is deducted in any case */
  use(amount: number): boolean {
    const nowMs = this.#nowMs();
    const refill = (Math.max(0, nowMs - this.#refilledAtMs) / 1_000) * this.#perSecond;
    this.#refilledAtMs = nowMs;
    this.#left = Math.min(this.#capacity, this.#left + refill) - amount;
    return this.#left >= 0;
  }
}
