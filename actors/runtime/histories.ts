import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';

/** The newest messages that a prompt takes in. A longer conversation loses its beginning, never its end. */
const MAX_HISTORY_MESSAGES = 400;
/** Conversations kept in memory: those that are going on, as many as sessions are (snapshots.ts). Dropping one costs a read, nothing else. */
const MAX_CACHED = 10_000;
/** Of all that are kept. Most are short; a thousand of the longest fit. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** One that is longer is read whenever it is needed: what it costs to read is little beside what it costs to send. */
const MAX_CACHED_CHARACTERS = 16 * 1_024;
/** Of an event beside its text: its ids, its times and its metadata, as a rule. */
const EVENT_CHARACTERS = 256;

/** A conversation whose messages are all known up to an offset. */
interface Cached {
  partition: number;
  messages: ConversationEvent[];
  /** Offset of the next event: what lies below it was looked at. */
  next: number;
  characters: number;
}

/**
 * What was said in the sessions of the partitions that this host owns. A turn's prompt holds all of it, and it is this host that has
 * stored it: so what goes on is kept in mind and need not be read again for every turn. A stored event never changes, so the rows and what
 * is kept here are the same.
 */
export class Histories {
  readonly #database: Queryable;
  /** The one that was used longest ago comes first. */
  readonly #cached = new Map<string, Cached>();
  /** Of all of them. */
  #characters = 0;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** The newest messages of a session up to and including an offset, in the order of the log. */
  async upTo(offset: number, { sessionId, partition }: { sessionId: string; partition: number }): Promise<ConversationEvent[]> {
    const cached = this.#cached.get(sessionId);
    if (cached !== undefined && cached.next > offset) {
      this.#retain(sessionId, cached);
      return cached.messages.filter((event) => event.offset <= offset);
    }
    const { rows } = await this.#database.query<{ body: ConversationEvent }>(SELECT, [sessionId, offset, MAX_HISTORY_MESSAGES]);
    const messages = rows.map((row) => row.body).reverse();
    const characters = messages.reduce((sum, event) => sum + weightOf(event), 0);
    this.#retain(sessionId, { partition, messages: [...messages], next: offset + 1, characters });
    return messages;
  }

  /** Takes over what a commit has stored, for the partitions that it really committed. */
  release({ events, deletedSessions }: CommitPlan, owned: ReadonlySet<number>): void {
    for (const { partition, sessionId, event } of events) if (owned.has(partition)) this.#append(sessionId, partition, event);
    for (const sessionId of deletedSessions.keys()) this.#drop(sessionId);
    this.#evict();
  }

  /** Forgets everything of a partition that another host may go on with. */
  forget(partition: number): void {
    for (const [sessionId, cached] of this.#cached) if (cached.partition === partition) this.#drop(sessionId);
  }

  #append(sessionId: string, partition: number, event: ConversationEvent): void {
    if (event.offset === 0) this.#retain(sessionId, { partition, messages: [], next: 0, characters: 0 });
    const cached = this.#cached.get(sessionId);
    if (cached === undefined) return;
    // One that was read while the log went on lacks what came meanwhile.
    if (event.offset !== cached.next) {
      this.#drop(sessionId);
      return;
    }
    cached.next += 1;
    if (!isMessage(event)) return;
    cached.messages.push(event);
    cached.characters += weightOf(event);
    this.#characters += weightOf(event);
    if (cached.characters > MAX_CACHED_CHARACTERS) this.#drop(sessionId);
  }

  #retain(sessionId: string, cached: Cached): void {
    this.#drop(sessionId);
    if (cached.characters > MAX_CACHED_CHARACTERS) return;
    this.#cached.set(sessionId, cached);
    this.#characters += cached.characters;
    this.#evict();
  }

  #evict(): void {
    for (const oldest of this.#cached.keys()) {
      if (this.#cached.size <= MAX_CACHED && this.#characters <= MAX_CHARACTERS) return;
      this.#drop(oldest);
    }
  }

  #drop(sessionId: string): void {
    this.#characters -= this.#cached.get(sessionId)?.characters ?? 0;
    this.#cached.delete(sessionId);
  }
}

function isMessage({ kind }: ConversationEvent): boolean {
  return kind === 'user_message' || kind === 'assistant_message' || kind === 'preamble';
}

function weightOf(event: ConversationEvent): number {
  return EVENT_CHARACTERS + ('text' in event ? event.text.length : 0);
}

const SELECT = {
  name: 'load-history',
  text: `select body from events where session_id = $1 and off <= $2 and kind in ('user_message', 'assistant_message', 'preamble') order by off desc limit $3`,
};
