import { LRUCache } from 'lru-cache';
import type { StagedRow, TurnStore } from '../../store/port/turn-store.ts';
import type { CommitPlan } from '../apply/commit-plan.ts';
import type { TurnStepRow } from '../apply/commit-rows.ts';

const MAX_TURNS = 1_000;
/** Over all turns. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** Turns with more, as with large results of tools, are read. */
const MAX_CACHED_CHARACTERS = 256 * 1_024;
/** Estimate per row. */
const ROW_CHARACTERS = 64;

interface Cached {
  partition: number;
  sessionId: string;
  rows: readonly StagedRow[];
  characters: number;
}

/**
 * LRU cache of the staged rows of turns that began at this host. Each of a turn's calls is rendered from them and each result is read with them, and this host
 * has stored them, so they need not be read. Rows are only appended, and never changed. Turns that another host began are read from the store.
 */
export class TurnRowCache implements Pick<TurnStore, 'staged'> {
  readonly #store: Pick<TurnStore, 'staged'>;
  readonly #cached = new LRUCache<string, Cached>({
    max: MAX_TURNS,
    maxSize: MAX_CHARACTERS,
    maxEntrySize: MAX_CACHED_CHARACTERS,
    sizeCalculation: ({ characters }) => characters,
  });

  constructor(store: Pick<TurnStore, 'staged'>) {
    this.#store = store;
  }

  async staged(turnIds: readonly string[]): Promise<Map<string, readonly StagedRow[]>> {
    const found = new Map<string, readonly StagedRow[]>();
    const missing: string[] = [];
    for (const turnId of turnIds) {
      const cached = this.#cached.get(turnId);
      if (cached === undefined) missing.push(turnId);
      else found.set(turnId, cached.rows);
    }
    if (missing.length === 0) return found;
    for (const [turnId, rows] of await this.#store.staged(missing)) found.set(turnId, rows);
    return found;
  }

  /** Adds what a commit has stored, for the partitions that it committed. */
  release({ turnSteps, deletedEvents, deletedSessions }: CommitPlan, owned: ReadonlySet<number>): void {
    for (const row of turnSteps) if (owned.has(row.partition)) this.#append(row);
    const deleted = new Set([...deletedSessions.keys(), ...deletedEvents.map(({ sessionId }) => sessionId)]);
    if (deleted.size > 0) this.#dropAll(({ sessionId }) => deleted.has(sessionId));
  }

  /** Drops a partition that another host may own. */
  forget(partition: number): void {
    this.#dropAll((cached) => cached.partition === partition);
  }

  #append({ partition, sessionId, turnId, seq, body }: TurnStepRow): void {
    const before = this.#cached.get(turnId) ?? { rows: [], characters: 0 };
    // The turn began before this host had its partition, or its first rows were evicted.
    if (before.rows.length !== seq) {
      this.#cached.delete(turnId);
      return;
    }
    const characters = before.characters + ROW_CHARACTERS + JSON.stringify(body).length;
    this.#cached.set(turnId, { partition, sessionId, rows: [...before.rows, { seq, body }], characters });
  }

  #dropAll(isDropped: (cached: Cached) => boolean): void {
    for (const [turnId, cached] of this.#cached) if (isDropped(cached)) this.#cached.delete(turnId);
  }
}
