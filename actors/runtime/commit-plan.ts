import type { CommandReply } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import type { RunError, StepMessage } from '../run/types.ts';
import type { EffectRow } from './effects.ts';
import type { PartitionClaim } from './ownership.ts';
import type { SessionState } from './snapshots.ts';

/** What is left to do once the commit has returned; all of it can be made again from the rows. */
export interface AfterCommit {
  replies: { partition: number; gateway: string; commandId: string; reply: CommandReply; repeat: boolean }[];
  /** By session: the first and last new offset and the stored texts. */
  notices: Map<string, { partition: number; first: number; last: number; events: string[]; isDeleted: boolean }>;
  /** Calls whose workers are told to stop. */
  aborts: { partition: number; callId: string }[];
  /** What happened, for the log: ids, never texts. */
  milestones: {
    partition: number;
    what: 'a turn began' | 'a turn ended' | 'a run began' | 'a run ended';
    fields: Record<string, string>;
    end: Ending | null;
  }[];
  /** What is over, for traces. */
  ended: EndedWork[];
}

/** A turn or a run that is over, as traces tell of it. */
export interface EndedWork {
  partition: number;
  kind: 'turn' | 'run';
  /** The turn's or the run's. */
  id: string;
  sessionId: string;
  /** Null for a turn. */
  routineId: string | null;
  bundleHash: string;
  /** `traceparent` of what asked for it. */
  parent: string | null;
  startedAtMs: number;
  endedAtMs: number;
  outcome: string;
}

/** How a turn or a run ended, and how long it took. */
export type Ending = { durationMs: number } & (
  | { of: 'turn'; outcome: 'completed' | 'failed' | 'cancelled' }
  /** The outcome of a run that failed is the code of its error. */
  | { of: 'run'; outcome: string }
);

export type EffectState = 'open' | 'done' | 'superseded';

/** How far a run has come, as its row shows it. What is null stays as it was. */
export interface RunProgress {
  partition: number;
  id: string;
  state: 'running' | 'succeeded' | 'failed';
  output: Record<string, unknown> | null;
  error: RunError | null;
  startedAtMs: number | null;
  completedAtMs: number | null;
}

/** A callback: what is posted, and where to. The body's bytes are fixed here, once and for all. */
export interface DeliveryRow {
  partition: number;
  id: string;
  sessionId: string;
  runId: string;
  url: string;
  hostAllowlist: readonly string[] | null;
  bundleHash: string;
  idempotencyKey: string;
  traceId: string;
  traceparent: string | null;
  body: string;
  createdAtMs: number;
}

interface DeadLetter {
  partition: number;
  id: string;
  source: 'command' | 'delivery';
  reason: string;
  body: string;
}

/**
 * The rows of one commit, collected command by command. A session, an effect and a timer key occur once each: what a later command
 * of the batch did to them replaces what an earlier one did.
 */
export class CommitPlan {
  readonly partitions = new Map<number, { claim: PartitionClaim; cursor: number; cursorFingerprint: string | null }>();
  readonly sessions = new Map<string, SessionState>();
  readonly deletedSessions = new Map<string, number>();
  readonly processed = new Map<string, { partition: number; sessionId: string; commandId: string; reply: CommandReply | null }>();
  readonly effects = new Map<string, EffectRow & { state: EffectState }>();
  /** Effects of earlier commits that are open no longer. */
  readonly effectStates = new Map<string, { partition: number; state: 'done' | 'superseded' }>();
  readonly outboxDone = new Map<string, number>();
  readonly timers = new Map<string, { partition: number; key: string; dueAtMs: number; command: string } | { partition: number; key: string; dueAtMs: null }>();
  readonly runs = new Map<string, RunProgress>();
  /** What came of calls of runs. */
  readonly runCalls: { partition: number; runId: string; effectId: string; outcome: RunCallOutcome; endedAtMs: number }[] = [];
  readonly deliveries = new Map<string, DeliveryRow>();
  readonly deliveryStates = new Map<string, { partition: number; state: 'delivered' | 'dead' }>();
  readonly deadLetters: DeadLetter[] = [];
  readonly after: AfterCommit = { replies: [], notices: new Map(), aborts: [], milestones: [], ended: [] };
  #events: { partition: number; sessionId: string; event: ConversationEvent; text: string }[] = [];
  #steps: { partition: number; sessionId: string; runId: string; seq: number; message: StepMessage }[] = [];

  get events(): readonly { partition: number; sessionId: string; event: ConversationEvent; text: string }[] {
    return this.#events;
  }

  get steps(): readonly { partition: number; sessionId: string; runId: string; seq: number; message: StepMessage }[] {
    return this.#steps;
  }

  /** Takes a partition into the commit; its cursor stays where it is unless `advance` moves it. */
  touch(claim: PartitionClaim): void {
    if (this.partitions.has(claim.partition)) return;
    this.partitions.set(claim.partition, { claim, cursor: claim.cursor, cursorFingerprint: claim.cursorFingerprint });
  }

  /** Takes partitions out again that have been lost since they came in: the statement would only fence them. */
  leaveOut(isOwned: (claim: PartitionClaim) => boolean): void {
    for (const [partition, { claim }] of this.partitions) if (!isOwned(claim)) this.partitions.delete(partition);
  }

  /** Moves a cursor forward, never back. */
  advance(claim: PartitionClaim, cursor: number, cursorFingerprint: string | null): void {
    this.touch(claim);
    if (cursor > (this.partitions.get(claim.partition)?.cursor ?? 0)) this.partitions.set(claim.partition, { claim, cursor, cursorFingerprint });
  }

  /** The log is another one than the cursor was of: what follows counts from its beginning. */
  restart(claim: PartitionClaim): void {
    this.partitions.set(claim.partition, { claim, cursor: 0, cursorFingerprint: null });
  }

  appendEvent(partition: number, sessionId: string, event: ConversationEvent): void {
    const text = JSON.stringify(event);
    this.#events.push({ partition, sessionId, event, text });
    const notice = this.after.notices.get(sessionId);
    if (notice === undefined) {
      this.after.notices.set(sessionId, { partition, first: event.offset, last: event.offset, events: [text], isDeleted: false });
      return;
    }
    notice.last = event.offset;
    notice.events.push(text);
  }

  stage(partition: number, sessionId: string, runId: string, seq: number, message: StepMessage): void {
    this.#steps.push({ partition, sessionId, runId, seq, message });
  }

  /** All rows of the session go, those of this very commit too: they would otherwise come in beside the deletion. */
  deleteSession(partition: number, sessionId: string): void {
    this.deletedSessions.set(sessionId, partition);
    this.#events = this.#events.filter((row) => row.sessionId !== sessionId);
    this.#steps = this.#steps.filter((row) => row.sessionId !== sessionId);
    const last = (this.sessions.get(sessionId)?.head ?? 0) - 1;
    this.after.notices.set(sessionId, { partition, first: last + 1, last, events: [], isDeleted: true });
  }

  openEffect(effect: EffectRow): void {
    this.effects.set(effect.id, { state: 'open', ...effect });
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

  /** A run that begins and ends in one commit is one row: what the end does not say stays as the beginning said it. */
  recordRun(progress: RunProgress): void {
    const earlier = this.runs.get(progress.id);
    this.runs.set(progress.id, { ...progress, startedAtMs: progress.startedAtMs ?? earlier?.startedAtMs ?? null });
  }
}
