import type { AgentEvent } from '#client/api.ts';
import type { FollowItem } from '#client/follow-item.ts';
import { type Entry, entryOf } from './entries.ts';

/** What the agent does: the last status of the log. */
export interface Activity {
  status: string;
  stage: string | null;
}

/** More are dropped from the front, and can be loaded again. */
const MAX_ENTRIES = 2_000;
const IDLE: readonly unknown[] = ['ready', 'cancelled', 'error'];

/** The log of a session as a page shows it: built from what `events.follow` gives. */
export class Conversation {
  entries: Entry[] = [];
  /** Replies in generation, by message: their text so far. */
  readonly openReplies = new Map<string, string>();
  /** Null: idle. */
  activity: Activity | null = null;
  /** Of the first event that is loaded. */
  firstOffset: number;
  lastOffset: number;

  /** @param after offset behind which it is read; -1: from the beginning */
  constructor(after: number) {
    this.firstOffset = after + 1;
    this.lastOffset = after;
  }

  get hasEarlier(): boolean {
    return this.firstOffset > 0;
  }

  read(item: FollowItem): void {
    switch (item.type) {
      case 'event':
        this.#onEvent(item.event);
        break;
      case 'delta':
        this.openReplies.set(item.messageId, (this.openReplies.get(item.messageId) ?? '') + item.text);
        break;
      case 'snapshot':
        this.openReplies.set(item.messageId, item.text);
        break;
      case 'reply-cancelled':
        this.openReplies.delete(item.messageId);
        break;
      case 'connection':
        break;
    }
  }

  /** @param events in order; those that are already there are left out */
  prepend(events: readonly AgentEvent[], from: number): void {
    const earlier = events.filter(({ offset }) => offset < this.firstOffset).flatMap((event) => entryOf(event) ?? []);
    this.entries = [...earlier, ...this.entries];
    this.firstOffset = Math.min(from, this.firstOffset);
  }

  #onEvent(event: AgentEvent): void {
    this.lastOffset = event.offset;
    if (typeof event.id === 'string') this.openReplies.delete(event.id);
    if (event.kind === 'status') this.activity = IDLE.includes(event.status) ? null : activityOf(event);
    const entry = entryOf(event);
    if (entry === null) return;
    this.entries.push(entry);
    if (this.entries.length > 2 * MAX_ENTRIES) this.#dropEarliest();
  }

  /** Half of them at once, so that each costs little. */
  #dropEarliest(): void {
    this.entries = this.entries.slice(-MAX_ENTRIES);
    this.firstOffset = this.entries[0]?.offset ?? this.firstOffset;
  }
}

function activityOf({ status, stage }: { status?: unknown; stage?: unknown }): Activity {
  return { status: String(status), stage: typeof stage === 'string' ? stage : null };
}
