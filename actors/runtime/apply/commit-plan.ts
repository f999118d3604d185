import type { CommandReply } from '#bus/messages/session.ts';
import type { PartitionClaim } from '../../store/port/partition-store.ts';
import type {
  AfterCommit,
  AgentStateRow,
  ChangedEvent,
  ClosedEffect,
  CommandRows,
  CustomerRow,
  DeadLetter,
  DeletedEvents,
  DeliveryEnd,
  DeliveryRow,
  EventRow,
  LabelledSession,
  OpenedEffect,
  RunCallRow,
  RunProgress,
  StepRow,
  TimerRow,
  TurnStepRow,
} from './commit-rows.ts';
import type { SessionState } from './session-state.ts';

interface ProcessedCommand {
  partition: number;
  sessionId: string;
  commandId: string;
  reply: CommandReply | null;
  /** An earlier commit has stored a transient refusal, which this reply replaces. */
  isReplaced: boolean;
}

/** The rows of one commit. Sessions, effects and timer keys occur once: a later command of the batch replaces an earlier one's. */
export class CommitPlan {
  readonly partitions = new Map<number, { claim: PartitionClaim; cursor: number; cursorFingerprint: string | null }>();
  readonly sessions = new Map<string, SessionState>();
  readonly deletedSessions = new Map<string, number>();
  readonly labelledSessions = new Map<string, LabelledSession>();
  readonly processed = new Map<string, ProcessedCommand>();
  readonly effects = new Map<string, OpenedEffect>();
  /** Effects of earlier commits that this one closes. */
  readonly effectStates = new Map<string, ClosedEffect>();
  /** Published effects of earlier commits, with their partitions. None that this one closes: a statement changes a row once. */
  readonly outboxDone = new Map<string, number>();
  readonly timers = new Map<string, TimerRow>();
  readonly runs = new Map<string, RunProgress>();
  readonly runCalls: RunCallRow[] = [];
  readonly deliveries = new Map<string, DeliveryRow>();
  readonly deliveryStates = new Map<string, DeliveryEnd>();
  readonly deadLetters: DeadLetter[] = [];
  readonly changedEvents: ChangedEvent[] = [];
  readonly deletedEvents: DeletedEvents[] = [];
  readonly after: AfterCommit = { replies: [], notices: new Map(), aborts: [], milestones: [], ended: [] };
  #customers: CustomerRow[] = [];
  #events: EventRow[] = [];
  #steps: StepRow[] = [];
  #turnSteps: TurnStepRow[] = [];
  #agentStates: AgentStateRow[] = [];

  get customers(): readonly CustomerRow[] {
    return this.#customers;
  }

  get events(): readonly EventRow[] {
    return this.#events;
  }

  get steps(): readonly StepRow[] {
    return this.#steps;
  }

  get turnSteps(): readonly TurnStepRow[] {
    return this.#turnSteps;
  }

  get agentStates(): readonly AgentStateRow[] {
    return this.#agentStates;
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

  /** Takes over what a command writes, after it has succeeded. Later commands replace what earlier ones wrote. */
  merge(rows: CommandRows): void {
    const { partition, sessionId, session } = rows;
    if (session !== null) this.sessions.set(sessionId, session);
    if (rows.labelled !== null) this.labelledSessions.set(sessionId, rows.labelled);
    for (const customer of rows.customers) this.#customers.push(customer);
    for (const row of rows.events) this.#append(row);
    for (const row of rows.changedEvents) this.changedEvents.push(row);
    for (const row of rows.deletedEvents) this.deletedEvents.push(row);
    if (rows.changedEvents.length + rows.deletedEvents.length > 0) this.#noteChange(rows);
    for (const row of rows.steps) this.#steps.push(row);
    for (const row of rows.turnSteps) this.#turnSteps.push(row);
    for (const row of rows.agentStates) this.#agentStates.push(row);
    for (const effect of rows.effects) this.openEffect(effect);
    for (const closed of rows.closedEffects) this.#close(closed);
    for (const timer of rows.timers) this.timers.set(timer.key, timer);
    for (const progress of rows.runs) this.#record(progress);
    for (const call of rows.runCalls) this.runCalls.push(call);
    for (const delivery of rows.deliveries) this.deliveries.set(delivery.id, delivery);
    for (const end of rows.deliveryEnds) this.deliveryStates.set(end.id, end);
    for (const letter of rows.deadLetters) this.deadLetters.push(letter);
    for (const abort of rows.aborts) this.after.aborts.push(abort);
    for (const milestone of rows.milestones) this.after.milestones.push(milestone);
    for (const ended of rows.ended) this.after.ended.push(ended);
    if (rows.isErased) this.#erase(partition, sessionId);
  }

  openEffect(effect: OpenedEffect): void {
    this.effects.set(effect.id, effect);
  }

  /** Whether a command of this commit has closed the effect. */
  isClosed(effectId: string): boolean {
    const own = this.effects.get(effectId);
    return own === undefined ? this.effectStates.has(effectId) : own.state !== 'open';
  }

  disarmTimer(partition: number, key: string): void {
    this.timers.set(key, { partition, key, dueAtMs: null });
  }

  #append(row: EventRow): void {
    const { partition, sessionId, event, text } = row;
    this.#events.push(row);
    const notice = this.after.notices.get(sessionId);
    if (notice === undefined) {
      this.after.notices.set(sessionId, { partition, first: event.offset, last: event.offset, events: [text], isDeleted: false });
      return;
    }
    notice.last = event.offset;
    notice.events.push(text);
  }

  /** Readers that have stored events in memory must drop them. */
  #noteChange({ partition, sessionId, session }: CommandRows): void {
    const notice = this.after.notices.get(sessionId);
    const head = session?.head ?? 0;
    if (notice === undefined) this.after.notices.set(sessionId, { partition, first: head, last: head - 1, events: [], isDeleted: false, isChanged: true });
    else notice.isChanged = true;
  }

  /** An effect of this commit or an earlier one. */
  #close(closed: ClosedEffect): void {
    const own = this.effects.get(closed.id);
    if (own !== undefined) {
      own.state = closed.state;
      return;
    }
    this.effectStates.set(closed.id, closed);
  }

  /** A run that begins and ends in one commit keeps its start. */
  #record(progress: RunProgress): void {
    const earlier = this.runs.get(progress.id);
    this.runs.set(progress.id, { ...progress, startedAtMs: progress.startedAtMs ?? earlier?.startedAtMs ?? null });
  }

  /** Also drops rows of this commit, which the statement would insert beside the deletion. */
  #erase(partition: number, sessionId: string): void {
    this.deletedSessions.set(sessionId, partition);
    this.#customers = this.#customers.filter((row) => row.sessionId !== sessionId);
    this.#events = this.#events.filter((row) => row.sessionId !== sessionId);
    this.#steps = this.#steps.filter((row) => row.sessionId !== sessionId);
    this.#turnSteps = this.#turnSteps.filter((row) => row.sessionId !== sessionId);
    this.#agentStates = this.#agentStates.filter((row) => row.sessionId !== sessionId);
    const last = (this.sessions.get(sessionId)?.head ?? 0) - 1;
    this.after.notices.set(sessionId, { partition, first: last + 1, last, events: [], isDeleted: true });
  }
}
