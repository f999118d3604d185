import { within } from '../within.ts';

/** What is in flight, for a drain that waits until nothing is. */
export class InFlight {
  #count = 0;
  #waiting: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  /** @returns leaves; call it once */
  enter(): () => void {
    this.#count += 1;
    return this.#leave;
  }

  readonly #leave = () => {
    this.#count -= 1;
    if (this.#count > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  };

  /** False after `timeoutMs` with something still in flight. */
  async whenIdle(timeoutMs: number): Promise<boolean> {
    if (this.#count === 0) return true;
    const idle = new Promise<boolean>((resolve) => this.#waiting.push(() => resolve(true)));
    return within(timeoutMs, idle, () => false);
  }
}
