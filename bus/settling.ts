/** Lets an item be settled once: the first call counts, unless it fails. */
export class Settling {
  readonly #assertOpen: () => void;
  #settled = false;

  /** @param assertOpen throws `bus.closed` */
  constructor(assertOpen: () => void) {
    this.#assertOpen = assertOpen;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /** @throws `bus.closed`, and what `settle` throws; then the handler may try again */
  async once(settle: () => Promise<unknown>): Promise<void> {
    this.#assertOpen();
    if (this.#settled) return;
    this.#settled = true;
    try {
      await settle();
    } catch (error) {
      this.#settled = false;
      throw error;
    }
  }
}
