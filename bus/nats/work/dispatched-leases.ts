import type { DispatchedItem } from '../../dispatched-item.ts';
import type { NatsLink } from '../connection/link.ts';

/** How often the broker's replies extend all leases while items are in flight. */
const CONFIRM_EVERY_MS = 500;
/** Requests within this time share a flush. */
const SHARED_FLUSH_MS = 100;

interface Connection extends Pick<NatsLink, 'isUp'> {
  /** `flush` resolves with the broker's reply to what was sent before. */
  main: { flush(): Promise<void> };
}

/**
 * Extends the leases of all dispatched items of a consumer by one reply of the broker. Each item's own renewal is due every 2 s, late by a tick of the event loop,
 * and its reply is read a tick later: too late for a lease of 4 s where a tick takes one.
 */
export class DispatchedLeases {
  readonly #link: Connection;
  readonly #items = new Set<DispatchedItem>();
  readonly #timer = setInterval(() => this.#confirmAll(), CONFIRM_EVERY_MS).unref();
  /** The last flush. */
  #last: { beganAt: number; done: Promise<number> } = { beganAt: Number.NEGATIVE_INFINITY, done: Promise.resolve(0) };

  constructor(link: Connection) {
    this.#link = link;
  }

  /** @returns drops it */
  add(item: DispatchedItem): () => void {
    this.#items.add(item);
    return () => this.#items.delete(item);
  }

  /** Confirms that the broker receives from this process; resolves with when the request was sent, by `performance.now()`. */
  confirm(): Promise<number> {
    const now = performance.now();
    if (now - this.#last.beganAt > SHARED_FLUSH_MS) this.#last = { beganAt: now, done: this.#flush(now) };
    return this.#last.done;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #flush(sentAt: number): Promise<number> {
    await this.#link.main.flush();
    for (const item of this.#items) item.onConfirmed(sentAt);
    return sentAt;
  }

  #confirmAll(): void {
    if (this.#items.size === 0 || !this.#link.isUp) return;
    this.confirm().catch(ignore);
  }
}

/** The connection has ended: its consumers notice. */
function ignore(): void {}
