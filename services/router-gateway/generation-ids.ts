import { createSecretKey, type KeyObject } from 'node:crypto';
import { mintGenerationId } from '#shared/generation-id.ts';

/** Of an id's timestamp. */
const FRESH_MS = 100;
/** Per key. */
const MAX_BATCH = 32;
/** Beyond it all batches are dropped; they expire within `FRESH_MS` anyway. */
const MAX_KEYS = 1_000;

/** Ids made together for one key. `size` is their initial number. */
interface IdBatch {
  ids: string[];
  madeAtMs: number;
  size: number;
}

/** Call ids, in batches for busy keys: an id's cost is mostly loading the hash's code and tables into the CPU cache, once per batch. */
export class GenerationIds {
  readonly #houseSecret: KeyObject;
  readonly #origin: string;
  readonly #batches = new Map<string, IdBatch>();

  constructor({ houseSecret, origin }: { houseSecret: string; origin: string }) {
    this.#houseSecret = createSecretKey(houseSecret, 'utf8');
    this.#origin = origin;
  }

  /** As `mintGenerationId`; its timestamp may be up to `FRESH_MS` old. */
  next(keyId: string, nowMs: number): string {
    const batch = this.#batches.get(keyId);
    const isFresh = batch !== undefined && nowMs >= batch.madeAtMs && nowMs - batch.madeAtMs < FRESH_MS;
    const ready = isFresh ? batch.ids.pop() : undefined;
    if (ready !== undefined) return ready;
    // Twice the last batch if that was used up in time.
    const size = isFresh ? Math.min(batch.size * 2, MAX_BATCH) : 1;
    const parts = { houseSecret: this.#houseSecret, origin: this.#origin, keyId, nowMs };
    const make = () => mintGenerationId(parts);
    const ids = Array.from({ length: size - 1 }, make);
    if (this.#batches.size >= MAX_KEYS) this.#batches.clear();
    this.#batches.set(keyId, { ids, madeAtMs: nowMs, size });
    return make();
  }
}
