import { LRUCache } from 'lru-cache';
import type { SessionStore, StoredSession } from '../../store/port/session-store.ts';
import type { ActorStates, SessionState } from './session-state.ts';

/** The states of the actors in a stored snapshot. */
export type DecodeSnapshot = (stored: { id: string; partition: number; snapshot: unknown }) => ActorStates;

/** Eviction costs one read. */
const MAX_CACHED_SESSIONS = 10_000;

/** Cache of this host's sessions, as the last commit stored them. */
export class Snapshots {
  readonly #store: Pick<SessionStore, 'load'>;
  readonly #decode: DecodeSnapshot;
  readonly #states = new LRUCache<string, SessionState>({ max: MAX_CACHED_SESSIONS });

  constructor(store: Pick<SessionStore, 'load'>, decode: DecodeSnapshot) {
    this.#store = store;
    this.#decode = decode;
  }

  /** Null for sessions that do not exist. One read for all that are not cached. */
  async load(sessionIds: Iterable<string>): Promise<Map<string, SessionState | null>> {
    const found = new Map<string, SessionState | null>();
    const missing: string[] = [];
    for (const id of new Set(sessionIds)) {
      const state = this.#states.peek(id);
      if (state === undefined) missing.push(id);
      else found.set(id, state);
    }
    if (missing.length > 0) {
      for (const stored of await this.#store.load(missing)) found.set(stored.id, this.#stateOf(stored));
      for (const id of missing) if (!found.has(id)) found.set(id, null);
    }
    return found;
  }

  retain(states: Iterable<SessionState>): void {
    for (const state of states) this.#states.set(state.id, state);
  }

  #stateOf({ snapshot, ...stored }: StoredSession): SessionState {
    return { ...stored, actors: this.#decode({ id: stored.id, partition: stored.partition, snapshot }) };
  }

  /** Drops a partition that another host owns. */
  forget(partition: number): void {
    for (const [id, state] of this.#states) if (state.partition === partition) this.#states.delete(id);
  }
}
