import { LRUCache } from 'lru-cache';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionStore } from '../../store/port/session-store.ts';
import type { CommitPlan } from '../apply/commit-plan.ts';

/** Newest messages of a prompt; older ones are left out. */
const MAX_HISTORY_MESSAGES = 400;
/** As many as sessions (snapshots.ts). Eviction costs one read. */
const MAX_CACHED = 10_000;
/** Over all conversations: 32 of the longest, some 90 of 400 messages of 200 characters. */
const MAX_CHARACTERS = 16 * 1_024 * 1_024;
/** Longer ones are not cached, so that they do not take the place of many. */
const MAX_CACHED_CHARACTERS = 512 * 1_024;
/** Messages that a cached conversation has beyond those of a prompt before its oldest are dropped, so that they are not dropped one by one. */
const MAX_SURPLUS = 100;
/** Estimate of ids, times and metadata per event. */
const EVENT_CHARACTERS = 256;

/** A conversation with the newest messages below offset `next`: all of them, or no fewer than a prompt has. */
interface Cached {
  partition: number;
  messages: ConversationEvent[];
  isWhole: boolean;
  next: number;
  characters: number;
}

/**
 * LRU cache of the conversations in this host's partitions. Each prompt contains the whole conversation, and this host has stored it, so it need
 * not be read for each turn. A commit that changes or deletes stored events drops its conversation.
 */
export class Histories {
  readonly #store: Pick<SessionStore, 'messages'>;
  readonly #cached = new LRUCache<string, Cached>({
    max: MAX_CACHED,
    maxSize: MAX_CHARACTERS,
    maxEntrySize: MAX_CACHED_CHARACTERS,
    // A size is positive.
    sizeCalculation: ({ characters }) => Math.max(1, characters),
  });

  /** Commits that changed or deleted stored events: a read that began before one may lack it. */
  #changes = 0;

  constructor(store: Pick<SessionStore, 'messages'>) {
    this.#store = store;
  }

  /** The newest messages and injected tool results up to and including an offset, in log order. */
  async upTo(offset: number, { sessionId, partition }: { sessionId: string; partition: number }): Promise<ConversationEvent[]> {
    const cached = this.#cached.get(sessionId);
    const isWithin = cached !== undefined && cached.next > offset;
    const known = isWithin ? newestUpTo(offset, cached) : null;
    if (known !== null) return known;
    const changes = this.#changes;
    const messages = await this.#store.messages(sessionId, offset, MAX_HISTORY_MESSAGES);
    if (this.#changes !== changes || isWithin) return messages;
    const characters = weightOfAll(messages);
    this.#cached.set(sessionId, { partition, messages: [...messages], isWhole: messages.length < MAX_HISTORY_MESSAGES, next: offset + 1, characters });
    return messages;
  }

  /** Adds what a commit has stored, for the partitions that it committed. */
  release({ events, changedEvents, deletedEvents, deletedSessions }: CommitPlan, owned: ReadonlySet<number>): void {
    for (const { partition, sessionId, event } of events) if (owned.has(partition)) this.#append(sessionId, partition, event);
    for (const sessionId of deletedSessions.keys()) this.#cached.delete(sessionId);
    for (const { sessionId } of [...changedEvents, ...deletedEvents]) this.#cached.delete(sessionId);
    if (changedEvents.length + deletedEvents.length > 0) this.#changes += 1;
  }

  /** Drops a partition that another host may own. */
  forget(partition: number): void {
    for (const [sessionId, cached] of this.#cached) if (cached.partition === partition) this.#cached.delete(sessionId);
  }

  #append(sessionId: string, partition: number, event: ConversationEvent): void {
    if (event.offset === 0) this.#cached.set(sessionId, { partition, messages: [], isWhole: true, next: 0, characters: 0 });
    const cached = this.#cached.get(sessionId);
    if (cached === undefined) return;
    // The history was read during this commit and lacks events.
    if (event.offset !== cached.next) {
      this.#cached.delete(sessionId);
      return;
    }
    cached.next += 1;
    if (!isMessage(event)) return;
    cached.messages.push(event);
    const characters = cached.characters + weightOf(event);
    // A new object: an unchanged one is not measured again.
    this.#cached.set(sessionId, withoutSurplus({ ...cached, characters }));
  }
}

/** @returns null when messages are missing that the prompt of an older offset has */
function newestUpTo(offset: number, { messages, isWhole }: Cached): ConversationEvent[] | null {
  const found = messages.filter((event) => event.offset <= offset).slice(-MAX_HISTORY_MESSAGES);
  return isWhole || found.length === MAX_HISTORY_MESSAGES ? found : null;
}

/** Keeps some beyond those of a prompt where they fit, since a turn may end below the newest. */
function withoutSurplus(cached: Cached): Cached {
  const surplus = cached.messages.length - MAX_HISTORY_MESSAGES;
  const isLong = cached.characters > MAX_CACHED_CHARACTERS;
  if (surplus <= (isLong ? 0 : MAX_SURPLUS)) return cached;
  const dropped = cached.messages.slice(0, isLong ? surplus : MAX_SURPLUS / 2);
  return {
    ...cached,
    messages: cached.messages.slice(dropped.length),
    isWhole: false,
    characters: cached.characters - weightOfAll(dropped),
  };
}

/** As the store's `messages`: what was said, and results of tools. */
function isMessage({ kind }: ConversationEvent): boolean {
  return kind === 'user_message' || kind === 'assistant_message' || kind === 'preamble' || kind === 'tool';
}

function weightOfAll(events: readonly ConversationEvent[]): number {
  return events.reduce((sum, event) => sum + weightOf(event), 0);
}

function weightOf(event: ConversationEvent): number {
  if (event.kind === 'tool') return EVENT_CHARACTERS + JSON.stringify(event.tool_calls).length;
  return EVENT_CHARACTERS + ('text' in event ? event.text.length : 0);
}
