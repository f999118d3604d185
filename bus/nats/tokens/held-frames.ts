import { atTickEnd } from '../connection/tick-end.ts';

/**
 * Frames that leave behind something which is still being collected in this tick. The socket is corked until the end of the tick anyway, so that none of them
 * is later for it.
 */
export class HeldFrames {
  readonly #send: (subject: string, frame: Uint8Array) => void;
  readonly #onRelease: () => void;
  /** Null: nothing is collected, and frames pass. */
  #ahead: (() => void) | null = null;
  #subjects: string[] = [];
  #frames: Uint8Array[] = [];

  /**
   * @param send must not throw
   * @param onRelease called after what goes ahead and the held frames were sent; must not throw
   */
  constructor(send: (subject: string, frame: Uint8Array) => void, onRelease: () => void = () => {}) {
    this.#send = send;
    this.#onRelease = onRelease;
  }

  /** Holds the frames that are published from now on, until the end of the tick or `release`. @param ahead sends what goes first; must not throw */
  holdBehind(ahead: () => void): void {
    this.#ahead = ahead;
    atTickEnd(() => this.release());
  }

  get isHolding(): boolean {
    return this.#ahead !== null;
  }

  publish(subject: string, frame: Uint8Array): void {
    if (this.#ahead === null) this.#send(subject, frame);
    else {
      this.#subjects.push(subject);
      this.#frames.push(frame);
    }
  }

  release(): void {
    const ahead = this.#ahead;
    if (ahead === null) return;
    const [subjects, frames] = [this.#subjects, this.#frames];
    [this.#ahead, this.#subjects, this.#frames] = [null, [], []];
    ahead();
    for (let index = 0; index < frames.length; index += 1) this.#send(subjects[index] as string, frames[index] as Uint8Array);
    this.#onRelease();
  }
}
