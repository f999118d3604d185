import { rateWindowOf } from './rate-windows.ts';

/** Beyond it all are forgotten. */
const MAX_KEYS = 10_000;

interface Counted {
  window: number;
  requests: number;
  tokens: number;
  calls: number;
}

/** What one process has counted for its keys by itself. */
export class LocalRates {
  readonly #counted = new Map<string, Counted>();

  /** Adds, and returns the sums of the window; `calls` has no window. */
  add(keyId: string, atMs: number, by: { requests: number; tokens: number; calls: number }): Readonly<Counted> {
    const window = rateWindowOf(atMs);
    let counted = this.#counted.get(keyId);
    if (counted === undefined) {
      if (this.#counted.size >= MAX_KEYS) this.#counted.clear();
      counted = { window, requests: 0, tokens: 0, calls: 0 };
      this.#counted.set(keyId, counted);
    }
    if (counted.window !== window) Object.assign(counted, { window, requests: 0, tokens: 0 });
    counted.requests += by.requests;
    counted.tokens += by.tokens;
    counted.calls = Math.max(0, counted.calls + by.calls);
    return counted;
  }
}
