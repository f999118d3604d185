import type { Log } from '#shared/telemetry/log.ts';
import type { Listening } from '../../bus.ts';
import { PubSub } from '../../pub-sub.ts';
import { afterWrites } from '../connection/tick-end.ts';

interface Waiting {
  subject: string;
  frame: Uint8Array;
  /** May be handed over once those before it were. */
  isFree: boolean;
}

/**
 * Hands frames to the readers in this process, in publish order (ADR 116). A client may have a frame as soon as it was handed over. So one that the broker
 * must have something ahead of waits until that is written, and those behind it wait too.
 */
export class LocalFrames {
  readonly #readers: PubSub<Uint8Array>;
  #waiting: Waiting[] = [];

  constructor(log: Log) {
    this.#readers = new PubSub(log);
  }

  subscribe(pattern: string, handler: (subject: string, frame: Uint8Array) => void): Listening {
    return this.#readers.subscribe(pattern, handler);
  }

  /** @param waits until `release` */
  publish(subject: string, frame: Uint8Array, waits: boolean): void {
    if (waits || this.#waiting.length > 0) this.#waiting.push({ subject, frame, isFree: !waits });
    else this.#readers.publish(subject, frame);
  }

  /** What waits is handed over once all that was published so far is written. */
  release(): void {
    const released = this.#waiting.filter(({ isFree }) => !isFree);
    if (released.length === 0) return;
    afterWrites(() => {
      for (const one of released) one.isFree = true;
      this.#handOver();
    });
  }

  /** Later frames are dropped, and those that wait. */
  close(): void {
    this.#readers.close();
  }

  #handOver(): void {
    const held = this.#waiting.findIndex(({ isFree }) => !isFree);
    const free = this.#waiting.splice(0, held === -1 ? this.#waiting.length : held);
    for (const { subject, frame } of free) this.#readers.publish(subject, frame);
  }
}
