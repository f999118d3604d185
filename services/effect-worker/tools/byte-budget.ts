import { ToolFailure } from './tool-failure.ts';

/** Of one response, or of all pages of a list. */
export class ByteBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** @throws ToolFailure `unreadable` */
  use(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes > this.#limitBytes) throw new ToolFailure('unreadable', `the answer is larger than ${this.#limitBytes} bytes`, { sent: true });
  }
}
