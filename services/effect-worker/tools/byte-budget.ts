import { ToolFailure } from './tool-failure.ts';

/** What may be read for one purpose: an answer, or all pages of one. */
export class ByteBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** @throws ToolFailure `unreadable` when it is used up */
  use(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes > this.#limitBytes) throw new ToolFailure('unreadable', `the answer is larger than ${this.#limitBytes} bytes`, { sent: true });
  }
}
