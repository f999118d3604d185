/** Listeners of a changing object; they are called once per frame at most. */
export class Changes {
  readonly #listeners = new Set<() => void>();
  #isScheduled = false;

  /** @returns ends it */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const flush = () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
      this.#isScheduled = false;
      for (const listener of this.#listeners) listener();
    };
    const frame = requestAnimationFrame(flush);
    // A hidden tab has no frames.
    const timer = setTimeout(flush, 250);
  }
}
