import type { Cache } from '../storage/cache.ts';
import { RATE_COUNTER_MS } from './rate-windows.ts';

/** How long corrections are summed. The limits of keys are per minute, so a counter that is late by this changes no decision that a slower call would not. */
const SUM_MS = 200;

/**
 * What calls have used beyond or below the tokens that were counted at admission, summed by counter and sent to the cache at most once per `SUM_MS`: an
 * addition for each call would be a command of its own. A process that dies loses its last sums, and their calls count as estimated.
 */
export class TokenCorrections {
  readonly #cache: Pick<Cache, 'increment'>;
  readonly #sums = new Map<string, number>();
  readonly #marking = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;

  constructor(cache: Pick<Cache, 'increment'>) {
    this.#cache = cache;
  }

  /** @param counter as `rateCounterOf` names it @param by tokens; negative: fewer were used than counted */
  add(counter: string, by: number): void {
    this.#sums.set(counter, (this.#sums.get(counter) ?? 0) + by);
    this.#timer ??= setTimeout(() => this.flush(), SUM_MS);
  }

  /** Likewise, unless a process has corrected the call so already. One command each, so only for calls that may have ended at two processes. */
  addOnce(callId: string, counter: string, by: number): void {
    const first = (corrections: number) => {
      if (corrections === 1) this.add(counter, by);
    };
    const marked = this.#cache.increment(markOf(callId), 1, RATE_COUNTER_MS).then(first, () => {});
    this.#marking.add(marked);
    void marked.then(() => this.#marking.delete(marked));
  }

  /** Of a call that `add` has corrected and that is executed again: `addOnce` then adds nothing. */
  noteCorrected(callId: string): void {
    this.#cache.increment(markOf(callId), 1, RATE_COUNTER_MS).catch(() => {});
  }

  /** Sends what is summed; never throws. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const [counter, by] of this.#sums) if (by !== 0) this.#cache.increment(counter, by, RATE_COUNTER_MS).catch(() => {});
    this.#sums.clear();
  }

  /** Sends what is summed once the cache has answered what `addOnce` asked it, or has failed to. */
  async stop(): Promise<void> {
    await Promise.all(this.#marking);
    this.flush();
  }
}

function markOf(callId: string): string {
  return `rate:corrected:${callId}`;
}
