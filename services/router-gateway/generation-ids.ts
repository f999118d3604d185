import { mintGenerationId } from '#shared/generation-id.ts';

/** An id is given out within this time of its making, which stands in it. */
const FRESH_MS = 100;
/** Made at once for one key. */
const MOST_AHEAD = 32;
/** Past it all stocks are given up: a stock is worth nothing a moment later. */
const MOST_KEYS = 1_000;

/** Ids that were made for a key together, and how many these were. */
interface Stock {
  ids: string[];
  madeAtMs: number;
  size: number;
}

/**
 * The ids of calls, some of them made ahead for a key that makes many. Nearly all that an id costs a process that does other things between
 * two is getting the code of the hash and its tables into the processor again: that is paid once for all that are made together.
 */
export class GenerationIds {
  readonly #houseSecret: string;
  readonly #origin: string;
  readonly #stocks = new Map<string, Stock>();

  constructor({ houseSecret, origin }: { houseSecret: string; origin: string }) {
    this.#houseSecret = houseSecret;
    this.#origin = origin;
  }

  /** As `mintGenerationId`; the time in it may be a tenth of a second ago. */
  next(keyId: string, nowMs: number): string {
    const stock = this.#stocks.get(keyId);
    const isFresh = stock !== undefined && nowMs >= stock.madeAtMs && nowMs - stock.madeAtMs < FRESH_MS;
    const ready = isFresh ? stock.ids.pop() : undefined;
    if (ready !== undefined) return ready;
    // As many as were wanted in time before, and as many again.
    const size = isFresh ? Math.min(stock.size * 2, MOST_AHEAD) : 1;
    const parts = { houseSecret: this.#houseSecret, origin: this.#origin, keyId, nowMs };
    const make = () => mintGenerationId(parts);
    const ids = Array.from({ length: size - 1 }, make);
    if (this.#stocks.size >= MOST_KEYS) this.#stocks.clear();
    this.#stocks.set(keyId, { ids, madeAtMs: nowMs, size });
    return make();
  }
}
