import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { CommitPlan } from './commit-plan.ts';

/** The newest messages that a prompt takes in. A longer conversation loses its beginning, never its end. */
const MAX_HISTORY_MESSAGES = 400;
/** Conversations kept in memory: those that are going on, as many as sessions are (snapshots.ts). Dropping one costs a read, nothing else. */
const MAX_KEPT = 10_000;
/** Of all that are kept. Most are short; a thousand of the longest fit. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** One that is longer is read whenever it is needed: what it costs to read is little beside what it costs to send. */
const MAX_KEPT_CHARACTERS = 16 * 1_024;
/** Of an event beside its text: its ids, its times and its metadata, as a rule. */
const EVENT_CHARACTERS = 256;

/** A conversation whose messages are all known up to an offset. */
interface Kept {
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
  readonly #kept = new Map<string, Kept>();
  /** Of all of them. */
  #characters = 0;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** The newest messages of a session up to and including an offset, in the order of the log. */
  async upTo(offset: number, { sessionId, partition }: { sessionId: string; partition: number }): Promise<ConversationEvent[]> {
    const kept = this.#kept.get(sessionId);
    if (kept !== undefined && kept.next > offset) {
      this.#keep(sessionId, kept);
      return kept.messages.filter((event) => event.offset <= offset);
    }
    const { rows } = await this.#database.query<{ body: ConversationEvent }>(SELECT, [sessionId, offset, MAX_HISTORY_MESSAGES]);
    const messages = rows.map((row) => row.body).reverse();
    const characters = messages.reduce((sum, event) => sum + weightOf(event), 0);
    this.#keep(sessionId, { partition, messages: [...messages], next: offset + 1, characters });
    return messages;
  }

  /** Takes over what a commit has stored, for the partitions that it really committed. */
  release({ events, deletedSessions }: CommitPlan, owned: ReadonlySet<number>): void {
    for (const { partition, sessionId, event } of events) if (owned.has(partition)) this.#append(sessionId, partition, event);
    for (const sessionId of deletedSessions.keys()) this.#drop(sessionId);
    this.#makeRoom();
  }

  /** Forgets everything of a partition that another host may go on with. */
  forget(partition: number): void {
    for (const [sessionId, kept] of this.#kept) if (kept.partition === partition) this.#drop(sessionId);
  }

  #append(sessionId: string, partition: number, event: ConversationEvent): void {
    if (event.offset === 0) this.#keep(sessionId, { partition, messages: [], next: 0, characters: 0 });
    const kept = this.#kept.get(sessionId);
    if (kept === undefined) return;
    // One that was read while the log went on lacks what came meanwhile.
    if (event.offset !== kept.next) {
      this.#drop(sessionId);
      return;
    }
    kept.next += 1;
    if (!isMessage(event)) return;
    kept.messages.push(event);
    kept.characters += weightOf(event);
    this.#characters += weightOf(event);
    if (kept.characters > MAX_KEPT_CHARACTERS) this.#drop(sessionId);
  }

  #keep(sessionId: string, kept: Kept): void {
    this.#drop(sessionId);
    if (kept.characters > MAX_KEPT_CHARACTERS) return;
    this.#kept.set(sessionId, kept);
    this.#characters += kept.characters;
    this.#makeRoom();
  }

  #makeRoom(): void {
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT && this.#characters <= MAX_CHARACTERS) return;
      this.#drop(oldest);
    }
  }

  #drop(sessionId: string): void {
    this.#characters -= this.#kept.get(sessionId)?.characters ?? 0;
    this.#kept.delete(sessionId);
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
