import { LRUCache } from 'lru-cache';
import { partitionOf } from '#bus/partition.ts';
import type { StoredAgentState, TurnStore } from '../../store/port/turn-store.ts';
import type { CommitPlan } from '../apply/commit-plan.ts';

/** As many as sessions have their snapshots cached. */
const MAX_SESSIONS = 10_000;
/** Over all sessions. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** Larger states are read. */
const MAX_CACHED_CHARACTERS = 64 * 1_024;
/** Estimate per session. */
const ENTRY_CHARACTERS = 128;

interface Cached {
  partition: number;
  /** Null: the session has none. */
  newest: StoredAgentState | null;
  characters: number;
}

/**
 * LRU cache of the newest agent state of each session whose partition this host owns. Only the owner of a session writes its states, and each command of a
 * turn with policies needs the newest one, so it is read once.
 */
export class AgentStateCache implements Pick<TurnStore, 'agentStates'> {
  readonly #store: Pick<TurnStore, 'agentStates'>;
  readonly #cached = new LRUCache<string, Cached>({
    max: MAX_SESSIONS,
    maxSize: MAX_CHARACTERS,
    maxEntrySize: MAX_CACHED_CHARACTERS,
    sizeCalculation: ({ characters }) => characters,
  });
  /** Changes that a read in flight may have missed. */
  #changes = 0;

  constructor(store: Pick<TurnStore, 'agentStates'>) {
    this.#store = store;
  }

  async agentStates(sessionIds: readonly string[]): Promise<Map<string, StoredAgentState>> {
    const found = new Map<string, StoredAgentState>();
    const missing: string[] = [];
    for (const sessionId of sessionIds) {
      const cached = this.#cached.get(sessionId);
      if (cached === undefined) missing.push(sessionId);
      else if (cached.newest !== null) found.set(sessionId, cached.newest);
    }
    if (missing.length === 0) return found;
    const before = this.#changes;
    const read = await this.#store.agentStates(missing);
    for (const [sessionId, newest] of read) found.set(sessionId, newest);
    // What was read may be of before a change: it serves this batch, whose commit is fenced if the partition was lost.
    if (this.#changes === before) for (const sessionId of missing) this.#set(partitionOf(sessionId), sessionId, read.get(sessionId) ?? null);
    return found;
  }

  /** Takes over what a commit has stored, for the partitions that it committed. */
  release({ agentStates, deletedEvents, deletedSessions }: CommitPlan, owned: ReadonlySet<number>): void {
    for (const { partition, sessionId, seq, offset, state } of agentStates) {
      // An amendment: the newest one, of this commit too, may have it already.
      if (seq < 0) this.#drop(sessionId);
      else if (owned.has(partition)) this.#set(partition, sessionId, { offset, state });
    }
    for (const { sessionId } of deletedEvents) this.#drop(sessionId);
    for (const sessionId of deletedSessions.keys()) this.#drop(sessionId);
  }

  /** Drops a partition that another host may own. */
  forget(partition: number): void {
    this.#changes += 1;
    for (const [sessionId, cached] of this.#cached) if (cached.partition === partition) this.#cached.delete(sessionId);
  }

  #set(partition: number, sessionId: string, newest: StoredAgentState | null): void {
    this.#changes += 1;
    const characters = ENTRY_CHARACTERS + (newest === null ? 0 : JSON.stringify(newest.state).length);
    this.#cached.set(sessionId, { partition, newest, characters });
  }

  #drop(sessionId: string): void {
    this.#changes += 1;
    this.#cached.delete(sessionId);
  }
}
