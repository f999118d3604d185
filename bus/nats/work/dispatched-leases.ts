import type { DispatchedItem } from '../../dispatched-item.ts';
import type { NatsLink } from '../connection/link.ts';

/** How often the broker's replies extend all leases while items are in flight. */
const CONFIRM_EVERY_MS = 500;
/** Requests within this time share a flush. */
const SHARED_FLUSH_MS = 100;

/** What is used of a connection. */
interface Flushed {
  /** Resolves with the broker's reply to what was sent before. */
  flush(): Promise<void>;
}

type Connections = Pick<NatsLink, 'isUp' | 'areTokensUp'> & { main: Flushed; tokens: Flushed };

/**
 * Extends the leases of all dispatched items of a consumer by one reply of the broker. Each item's own renewal is due every 2 s, late by a tick of the event loop,
 * and its reply is read a tick later: too late for a lease of 4 s where a tick takes one.
 */
export class DispatchedLeases {
  readonly #link: Connections;
  readonly #items = new Set<DispatchedItem>();
  readonly #timer = setInterval(() => this.#confirmAll(), CONFIRM_EVERY_MS).unref();
  /** The last flush. */
  #last: { beganAt: number; done: Promise<number> } = { beganAt: Number.NEGATIVE_INFINITY, done: Promise.resolve(0) };

  constructor(link: Connections) {
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
    const showing = [...this.#items].filter((item) => item.isShowing());
    if (showing.length === 0 || !this.#link.areTokensUp) return;
    // Frames have a connection of their own.
    const onShown = () => {
      for (const item of showing) item.onShown();
    };
    this.#link.tokens.flush().then(onShown, ignore);
  }
}

/** The connection has ended: its consumers notice. */
function ignore(): void {}
