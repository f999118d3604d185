import type { CommandReply } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import type { RunError, StepMessage } from '../../kinds/run/types.ts';
import type { PartitionClaim } from '../partitions/ownership.ts';
import type { SessionState } from './snapshots.ts';

/** To do after the commit; can all be derived again from the rows. */
export interface AfterCommit {
  replies: { partition: number; gateway: string; commandId: string; reply: CommandReply; repeat: boolean }[];
  /** By session: first and last new offset, and the events as JSON. */
  notices: Map<string, { partition: number; first: number; last: number; events: string[]; isDeleted: boolean }>;
  /** Superseded calls, to be aborted at their workers. */
  aborts: { partition: number; callId: string }[];
  /** Lines for the log: ids, no content. */
  milestones: {
    partition: number;
    what: 'a turn began' | 'a turn ended' | 'a run began' | 'a run ended';
    fields: Record<string, string>;
    end: Ending | null;
  }[];
  /** For traces. */
  ended: EndedWork[];
}

/** An ended turn or run, for traces. */
export interface EndedWork {
  partition: number;
  kind: 'turn' | 'run';
  id: string;
  sessionId: string;
  /** Null for a turn. */
  routineId: string | null;
  bundleHash: string;
  /** `traceparent` of the request behind it. */
  parent: string | null;
  startedAtMs: number;
  endedAtMs: number;
  outcome: string;
}

export type Ending = { durationMs: number } & (
  | { of: 'turn'; outcome: 'completed' | 'failed' | 'cancelled' }
  /** `succeeded`, or the error's code. */
  | { of: 'run'; outcome: string }
);

export type EffectState = 'open' | 'done' | 'superseded';

/** Progress of a run, as in its row. Null: not set yet. */
export interface RunProgress {
  partition: number;
  id: string;
  state: 'running' | 'succeeded' | 'failed';
  output: Record<string, unknown> | null;
  error: RunError | null;
  startedAtMs: number | null;
  completedAtMs: number | null;
}

/** A callback to post; the body's bytes are fixed here. */
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

/** The rows of one commit. Sessions, effects and timer keys occur once: a later command of the batch replaces an earlier one's. */
export class CommitPlan {
  readonly partitions = new Map<number, { claim: PartitionClaim; cursor: number; cursorFingerprint: string | null }>();
  readonly sessions = new Map<string, SessionState>();
  readonly deletedSessions = new Map<string, number>();
  readonly processed = new Map<string, { partition: number; sessionId: string; commandId: string; reply: CommandReply | null }>();
  readonly effects = new Map<string, EffectRow & { state: EffectState }>();
  /** Effects of earlier commits that this one closes. */
  readonly effectStates = new Map<string, { partition: number; state: 'done' | 'superseded' }>();
  readonly outboxDone = new Map<string, number>();
  readonly timers = new Map<string, { partition: number; key: string; dueAtMs: number; command: string } | { partition: number; key: string; dueAtMs: null }>();
  readonly runs = new Map<string, RunProgress>();
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

  /** Adds a partition; only `advance` moves its cursor. */
  touch(claim: PartitionClaim): void {
    if (this.partitions.has(claim.partition)) return;
    this.partitions.set(claim.partition, { claim, cursor: claim.cursor, cursorFingerprint: claim.cursorFingerprint });
  }

  /** Removes partitions lost meanwhile, which the statement would fence anyway. */
  leaveOut(isOwned: (claim: PartitionClaim) => boolean): void {
    for (const [partition, { claim }] of this.partitions) if (!isOwned(claim)) this.partitions.delete(partition);
  }

  /** Moves a cursor, forward only. */
  advance(claim: PartitionClaim, cursor: number, cursorFingerprint: string | null): void {
    this.touch(claim);
    if (cursor > (this.partitions.get(claim.partition)?.cursor ?? 0)) this.partitions.set(claim.partition, { claim, cursor, cursorFingerprint });
  }

  /** The command log was replaced: its sequences start anew. */
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

  /** Also drops rows of this commit, which the statement would insert beside the deletion. */
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

  /** Closes an effect of this commit or an earlier one. */
  closeEffect(partition: number, id: string, state: 'done' | 'superseded'): void {
    const own = this.effects.get(id);
    if (own) own.state = state;
    else {
      this.effectStates.set(id, { partition, state });
      // Closed effects must not be published any more.
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

  /** A run that begins and ends in one commit keeps its start. */
  recordRun(progress: RunProgress): void {
    const earlier = this.runs.get(progress.id);
    this.runs.set(progress.id, { ...progress, startedAtMs: progress.startedAtMs ?? earlier?.startedAtMs ?? null });
  }
}
