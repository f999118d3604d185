import { mintGenerationId } from '#shared/generation-id.ts';

/** Of an id's timestamp. */
const FRESH_MS = 100;
/** Per key. */
const MOST_AHEAD = 32;
/** Beyond it all batches are dropped; they expire within `FRESH_MS` anyway. */
const MOST_KEYS = 1_000;

/** Ids made together for one key. `size` is their initial number. */
interface Stock {
  ids: string[];
  madeAtMs: number;
  size: number;
}

/** Call ids, in batches for busy keys: an id's cost is mostly loading the hash's code and tables into the CPU cache, once per batch. */
export class GenerationIds {
  readonly #houseSecret: string;
  readonly #origin: string;
  readonly #stocks = new Map<string, Stock>();

  constructor({ houseSecret, origin }: { houseSecret: string; origin: string }) {
    this.#houseSecret = houseSecret;
    this.#origin = origin;
  }

  /** As `mintGenerationId`; its timestamp may be up to `FRESH_MS` old. */
  next(keyId: string, nowMs: number): string {
    const stock = this.#stocks.get(keyId);
    const isFresh = stock !== undefined && nowMs >= stock.madeAtMs && nowMs - stock.madeAtMs < FRESH_MS;
    const ready = isFresh ? stock.ids.pop() : undefined;
    if (ready !== undefined) return ready;
    // Twice the last batch if that was used up in time.
    const size = isFresh ? Math.min(stock.size * 2, MOST_AHEAD) : 1;
    const parts = { houseSecret: this.#houseSecret, origin: this.#origin, keyId, nowMs };
    const make = () => mintGenerationId(parts);
    const ids = Array.from({ length: size - 1 }, make);
    if (this.#stocks.size >= MOST_KEYS) this.#stocks.clear();
    this.#stocks.set(keyId, { ids, madeAtMs: nowMs, size });
    return make();
  }
}
