import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import type { EvaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { evaluationModel } from '../engine/evaluation/evaluation-keys.ts';
import { documentKeys, type Evaluations, evaluationSet, evaluationsOf, noEvaluations, setKeyOf, vectorsAmong } from '../engine/evaluation/evaluation-set.ts';

/** Bundles and their sets: the current ones, and those of older turns. */
const MAX_CACHED = 16;
/** Vectors of texts, by the content that they are of: those of some bundles in the largest size. */
const MAX_VECTOR_BYTES = 64 * 1024 * 1024;
/** Between looks for a newer set: an evaluation takes minutes, and is rare. */
const LOOK_MS = 10_000;

/** Reads what boot-time evaluations have found out about a bundle's documents. */
export class EvaluationsReader {
  readonly #store: Pick<EvaluationStore, 'read' | 'newestSet'>;
  readonly #clock: Clock;
  readonly #newest = new LRUCache<string, { set: string | null; readAtMs: number }>({ max: MAX_CACHED });
  readonly #sets = new LRUCache<string, Evaluations>({ max: MAX_CACHED });
  /** Once for all sets that name them. */
  readonly #vectors = new LRUCache<string, Float32Array>({ maxSize: MAX_VECTOR_BYTES, sizeCalculation: ({ byteLength }) => byteLength });
  readonly #keys = new WeakMap<Bundle, string>();

  constructor({ store, clock }: { store: Pick<EvaluationStore, 'read' | 'newestSet'>; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Of a turn that begins now; some seconds old. Null: nothing has been evaluated. */
  async newestSet(bundle: Bundle): Promise<string | null> {
    const key = this.#keyOf(bundle);
    const nowMs = this.#clock.nowMs();
    const known = this.#newest.get(key);
    if (known !== undefined && nowMs - known.readAtMs < LOOK_MS) return known.set;
    const set = await this.#store.newestSet(key);
    this.#newest.set(key, { set, readAtMs: nowMs });
    return set;
  }

  /** A set never changes. One that is no longer stored counts as none: the documents' own texts count. */
  async read(bundle: Bundle, set: string | null): Promise<Evaluations> {
    if (set === null) return noEvaluations;
    const cached = this.#sets.get(set);
    if (cached !== undefined) return cached;
    const { data } = evaluationSet.safeParse((await this.#store.read([set])).get(set)?.result);
    if (data === undefined) return noEvaluations;
    const vectors = new Map(
      data.hashes.flatMap((hash) => {
        const known = this.#vectors.get(hash);
        return known === undefined ? [] : [[hash, known] as const];
      }),
    );
    const rows = await this.#store.read(data.hashes.filter((hash) => !vectors.has(hash)));
    for (const [key, read] of vectorsAmong(bundle.body, rows)) {
      vectors.set(key, read);
      this.#vectors.set(key, read);
      // As text they would take more than twice as much again.
      rows.delete(key);
    }
    const found = evaluationsOf(set, rows, evaluationModel(bundle.body.manifest.agent_config), vectors);
    this.#sets.set(set, found);
    return found;
  }

  #keyOf(bundle: Bundle): string {
    const known = this.#keys.get(bundle);
    if (known !== undefined) return known;
    const key = setKeyOf(documentKeys(bundle.body));
    this.#keys.set(bundle, key);
    return key;
  }
}
