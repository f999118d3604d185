import type { Answer } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { PartitionClaim } from './ownership.ts';
import type { SessionState } from './snapshots.ts';

/** An effect as its row names it: the request is rendered from the inputs whenever it is published, and renders the same each time. */
export interface EffectRow {
  partition: number;
  id: string;
  sessionId: string;
  turnId: string;
  kind: 'router-call';
  inputs: RouterCallInputs;
  createdAtMs: number;
}

export interface RouterCallInputs {
  /** Which rendering: a change of the prompt's building takes a new number. */
  template: 'compose@1';
  bundleHash: string;
  /** The log up to and including this offset is the conversation. */
  upToOffset: number;
  deadlineAtMs: number;
  traceparent: string | null;
}

/** What is left to do once the commit has returned; all of it can be made again from the rows. */
export interface AfterCommit {
  answers: { partition: number; gateway: string; commandId: string; answer: Answer; repeat: boolean }[];
  /** By session: the first and last new offset and the stored texts. */
  notices: Map<string, { partition: number; first: number; last: number; events: string[] }>;
  /** Calls whose workers are told to stop. */
  aborts: { partition: number; callId: string }[];
}

/**
 * The rows of one commit, collected command by command. A session, an effect and a timer key occur once each: what a later command
 * of the batch did to them replaces what an earlier one did.
 */
export class CommitPlan {
  readonly partitions = new Map<number, { cursor: number; cursorMessageId: string | null }>();
  readonly sessions = new Map<string, SessionState>();
  readonly events: { partition: number; sessionId: string; event: ConversationEvent; text: string }[] = [];
  readonly seen = new Map<string, { partition: number; sessionId: string; commandId: string; answer: Answer | null }>();
  readonly effects = new Map<string, EffectRow & { state: 'open' | 'done' | 'superseded' }>();
  /** Effects of earlier commits that are open no longer. */
  readonly effectStates = new Map<string, { partition: number; state: 'done' | 'superseded' }>();
  readonly outboxDone = new Map<string, number>();
  readonly timers = new Map<string, { partition: number; key: string; dueAtMs: number; command: string } | { partition: number; key: string; dueAtMs: null }>();
  readonly deadLetters: { partition: number; id: string; reason: string; body: string }[] = [];
  readonly after: AfterCommit = { answers: [], notices: new Map(), aborts: [] };

  /** Takes a partition into the commit; its cursor stays where it is unless `advance` moves it. */
  touch(claim: PartitionClaim): void {
    if (this.partitions.has(claim.partition)) return;
    this.partitions.set(claim.partition, { cursor: claim.cursor, cursorMessageId: claim.cursorMessageId });
  }

  /** Moves a cursor forward, never back. The message id is null where the partition's own last command lies further back. */
  advance(partition: number, cursor: number, cursorMessageId: string | null): void {
    if (cursor > (this.partitions.get(partition)?.cursor ?? 0)) this.partitions.set(partition, { cursor, cursorMessageId });
  }

  appendEvent(partition: number, sessionId: string, event: ConversationEvent): void {
    const text = JSON.stringify(event);
    this.events.push({ partition, sessionId, event, text });
    const notice = this.after.notices.get(sessionId);
    if (notice === undefined) this.after.notices.set(sessionId, { partition, first: event.offset, last: event.offset, events: [text] });
    else {
      notice.last = event.offset;
      notice.events.push(text);
    }
  }

  openEffect(effect: EffectRow): void {
    this.effects.set(effect.id, { ...effect, state: 'open' });
  }

  /** Closes an effect, whether it was opened in this commit or before. */
  closeEffect(partition: number, id: string, state: 'done' | 'superseded'): void {
    const own = this.effects.get(id);
    if (own) own.state = state;
    else {
      this.effectStates.set(id, { partition, state });
      // Whether it was published or not, it is not to be published any more.
      this.outboxDone.set(id, partition);
    }
    if (state === 'superseded') this.after.aborts.push({ partition, callId: id });
  }

  armTimer(partition: number, key: string, dueAtMs: number, command: string): void {
    this.timers.set(key, { partition, key, dueAtMs, command });
  }

  disarmTimer(partition: number, key: string): void {
    this.timers.set(key, { partition, key, dueAtMs: null });
  }
}
