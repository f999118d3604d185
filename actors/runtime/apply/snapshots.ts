import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { ActorStates, SessionState } from './session-state.ts';

interface SessionRow {
  id: string;
  p: number;
  head: number;
  snapshot: unknown;
  record: unknown;
  is_deleted: boolean;
}

/** The states of the actors in a stored snapshot. */
export type DecodeSnapshot = (stored: { id: string; partition: number; snapshot: unknown }) => ActorStates;

/** Eviction costs one read. */
const MAX_CACHED_SESSIONS = 10_000;

/** Cache of this host's sessions, as the last commit stored them. */
export class Snapshots {
  readonly #database: Queryable;
  readonly #decode: DecodeSnapshot;
  readonly #states = new Map<string, SessionState>();

  constructor(database: Queryable, decode: DecodeSnapshot) {
    this.#database = database;
    this.#decode = decode;
  }

  /** Null for sessions that do not exist. One query for all that are not cached. */
  async load(sessionIds: Iterable<string>): Promise<Map<string, SessionState | null>> {
    const found = new Map<string, SessionState | null>();
    const missing: string[] = [];
    for (const id of new Set(sessionIds)) {
      const state = this.#states.get(id);
      if (state === undefined) missing.push(id);
      else found.set(id, state);
    }
    if (missing.length > 0) {
      const { rows } = await this.#database.query<SessionRow>(SELECT, [missing]);
      for (const row of rows) found.set(row.id, this.#stateOf(row));
      for (const id of missing) if (!found.has(id)) found.set(id, null);
    }
    return found;
  }

  retain(states: Iterable<SessionState>): void {
    for (const state of states) {
      this.#states.delete(state.id);
      this.#states.set(state.id, state);
    }
    for (const id of this.#states.keys()) {
      if (this.#states.size <= MAX_CACHED_SESSIONS) break;
      this.#states.delete(id);
    }
  }

  #stateOf({ id, p: partition, head, snapshot, record, is_deleted: isDeleted }: SessionRow): SessionState {
    const actors = this.#decode({ id, partition, snapshot });
    return { id, partition, head, record: record as SessionRecord, actors, isDeleted };
  }

  /** Drops a partition that another host owns. */
  forget(partition: number): void {
    for (const [id, state] of this.#states) if (state.partition === partition) this.#states.delete(id);
  }
}

const SELECT = {
  name: 'load-sessions',
  text: 'select id, p, head, snapshot, record, deleted_at is not null as is_deleted from sessions where id = any($1::text[])',
};
