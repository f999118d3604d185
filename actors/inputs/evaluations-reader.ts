import { LRUCache } from 'lru-cache';
import type { Clock } from '#shared/clock.ts';
import type { EvaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { evaluationModel } from '../engine/evaluation/evaluation-keys.ts';
import { documentKeys, type Evaluations, evaluationSet, evaluationsOf, noEvaluations, setKeyOf, vectorsAmong } from '../engine/evaluation/evaluation-set.ts';

/** Bundles and their sets: the current ones, and those of older turns. */
const MAX_CACHED = 16;
/** Vectors of texts that bundles may have in common, by their content. Those of a bundle in use stay with it beyond that. */
const MAX_VECTOR_BYTES = 64 * 1024 * 1024;
/** Between looks for a newer set: an evaluation takes minutes, and is rare. */
const LOOK_MS = 10_000;

interface EvaluationsReaderDeps {
  store: Pick<EvaluationStore, 'read' | 'newestSet'>;
  clock: Clock;
  maxVectorBytes?: number;
}

interface ReadOfBundle {
  /** By which its sets are found. */
  key: string;
  sets: LRUCache<string, Evaluations>;
  /** Once for all sets that name them. */
  vectors: Map<string, Float32Array>;
}

/** Reads what boot-time evaluations have found out about a bundle's documents. */
export class EvaluationsReader {
  readonly #store: Pick<EvaluationStore, 'read' | 'newestSet'>;
  readonly #clock: Clock;
  readonly #newest = new LRUCache<string, { set: string | null; readAtMs: number }>({ max: MAX_CACHED });
  /** Released with the bundle, as what turns make of it is. */
  readonly #bundles = new WeakMap<Bundle, ReadOfBundle>();
  readonly #vectors: LRUCache<string, Float32Array>;

  constructor({ store, clock, maxVectorBytes = MAX_VECTOR_BYTES }: EvaluationsReaderDeps) {
    this.#store = store;
    this.#clock = clock;
    this.#vectors = new LRUCache({ maxSize: maxVectorBytes, sizeCalculation: ({ byteLength }) => byteLength });
  }

  /** Of a turn that begins now; some seconds old. Null: nothing has been evaluated. */
  async newestSet(bundle: Bundle): Promise<string | null> {
    const { key } = this.#readOf(bundle);
    const nowMs = this.#clock.nowMs();
    const known = this.#newest.get(key);
    // The clock may have been set back.
    if (known !== undefined && Math.abs(nowMs - known.readAtMs) < LOOK_MS) return known.set;
    const set = await this.#store.newestSet(key);
    this.#newest.set(key, { set, readAtMs: nowMs });
    return set;
  }

  /** A set never changes. One that is no longer stored counts as none: the documents' own texts count. */
  async read(bundle: Bundle, set: string | null): Promise<Evaluations> {
    if (set === null) return noEvaluations;
    const read = this.#readOf(bundle);
    const cached = read.sets.get(set);
    if (cached !== undefined) return cached;
    const { data } = evaluationSet.safeParse((await this.#store.read([set])).get(set)?.result);
    if (data === undefined) return noEvaluations;
    const vectors = new Map(
      data.hashes.flatMap((hash) => {
        const known = read.vectors.get(hash) ?? this.#vectors.get(hash);
        return known === undefined ? [] : [[hash, known] as const];
      }),
    );
    const rows = await this.#store.read(data.hashes.filter((hash) => !vectors.has(hash)));
    for (const [key, made] of vectorsAmong(bundle.body, rows)) {
      // Another set may have been read meanwhile.
      const kept = read.vectors.get(key) ?? made;
      vectors.set(key, kept);
      this.#vectors.set(key, kept);
      // As text they would take more than twice as much again.
      rows.delete(key);
    }
    for (const [key, kept] of vectors) read.vectors.set(key, kept);
    const found = evaluationsOf(set, rows, evaluationModel(bundle.body.manifest.agent_config), vectors);
    read.sets.set(set, found);
    return found;
  }

  #readOf(bundle: Bundle): ReadOfBundle {
    const known = this.#bundles.get(bundle);
    if (known !== undefined) return known;
    const key = setKeyOf(documentKeys(bundle.body));
    const read = { key, sets: new LRUCache<string, Evaluations>({ max: MAX_CACHED }), vectors: new Map<string, Float32Array>() };
    this.#bundles.set(bundle, read);
    return read;
  }
}
