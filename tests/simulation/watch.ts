import type { CommitPlan } from '../../actors/runtime/apply/commit-plan.ts';
import type { CommitResult } from '../../actors/store/port/commit-store.ts';
import type { PartitionClaim } from '../../actors/store/port/partition-store.ts';
import type { WorkKind } from '../../bus/bus.ts';
import type { NoticeMessage, ReplyMessage, SessionCommand } from '../../bus/messages/session.ts';
import type { EnvironmentWatch } from './environment.ts';
import { LogWatch } from './log-watch.ts';
import type { BrokerWatch, Consumer, LogEntry, QueuedItem } from './model-broker.ts';
import type { ModelTables } from './model-rows.ts';
import type { Process, Scheduler } from './scheduler.ts';
import { TakeOverWatch } from './take-over-watch.ts';
import { TimerWatch } from './timer-watch.ts';

/** Checks of a commit, while it is executed. */
interface CommitWatch {
  /** @returns receives the result */
  begin(): (result: CommitResult) => void;
}

/** A command that the log has accepted. */
export interface Stored {
  entry: LogEntry;
  /** Null for an unreadable one. */
  command: SessionCommand | null;
  /** The broker has lost it before it was applied. */
  isLost: boolean;
}

/**
 * Checks invariants at every step of a simulation: it reads the rows and the broker directly, and compares them at once with what is executed,
 * published and settled, since most violations are repaired later and would not be seen at the end.
 */
export class Watch implements BrokerWatch, EnvironmentWatch {
  readonly #scheduler: Scheduler;
  readonly #tables: ModelTables;
  readonly violations: string[] = [];
  readonly history: Stored[] = [];
  readonly #sessionOf = new Map<string, string>();
  readonly #published = new Set<string>();
  readonly #reported = new Set<string>();
  readonly timerKeys = new Set<string>();
  /** Ids of dead letters that were deleted with their session. */
  readonly #deletedLetters = new Set<unknown>();
  /** Of redelivered items: whether their effect was over at the delivery, by process and effect. */
  readonly #overAtDelivery = new Map<string, boolean>();
  /** Dispatched calls that no worker has, and since when. */
  readonly #silentSinceMs = new Map<string, number>();
  /** The last change of an owner. */
  #acquiredAtMs = 0;
  /** Which worker has begun a dispatched call. */
  readonly #workerOf = new Map<string, Process>();
  /** The hosts that answer for a partition at the end. */
  readonly owners = new Map<number, string[]>();
  /** Deletions and changes of stored events. */
  readonly logs: LogWatch;
  readonly takeOvers: TakeOverWatch;
  readonly #timers: TimerWatch;
  readonly counts = { commits: 0, takes: 0, fenced: 0, notices: 0, redeliveries: 0, dispatches: 0 };

  constructor(scheduler: Scheduler, tables: ModelTables) {
    this.#scheduler = scheduler;
    this.#tables = tables;
    this.logs = new LogWatch(scheduler, tables, (rule, what) => this.breach(rule, what));
    this.takeOvers = new TakeOverWatch(scheduler, this.history, (what) => this.breach('take-over', what));
    this.#timers = new TimerWatch((what) => this.breach('timer', what));
  }

  breach(rule: string, what: string): void {
    this.violations.push(`${rule}: ${what} (step ${this.#scheduler.steps})`);
  }

  /** Partitions were acquired. */
  acquired(claims: readonly PartitionClaim[]): void {
    this.counts.takes += claims.length;
    if (claims.length > 0) this.#acquiredAtMs = this.#scheduler.nowMs;
    this.takeOvers.acquired(claims);
  }

  /** @param plan as it is sent: its claims change until it is executed */
  commit(plan: CommitPlan): CommitWatch {
    const sent = [...plan.partitions.values()].map(({ claim, cursor }) => ({ p: claim.partition, epoch: claim.epoch, commitNo: claim.commitNo, cursor }));
    const marked = [...plan.outboxDone];
    const derived = [...plan.timers.values()].filter(({ isDerived, dueAtMs }) => isDerived === true && dueAtMs !== null);
    return {
      begin: () => {
        const before = new Map(sent.map(({ p }) => [p, { ...this.#tables.parts.get(p) }]));
        const afterLogs = this.logs.begin(plan);
        const letters = this.#tables.deadLetters.filter(({ session_id: session }) => plan.deletedSessions.has(session as string));
        const isOld = sent.every(({ p, epoch, commitNo }) => before.get(p)?.['epoch'] !== epoch || before.get(p)?.['commit_no'] !== commitNo);
        return (result) => {
          if (result.kind === 'repeated') {
            if (isOld) this.breach('fence', 'a commit whose time was over got as far as its rows');
            return;
          }
          const own = sent.filter(({ p }) => result.owned.has(p));
          this.#scheduler.note(`committed ${own.map(({ p, cursor }) => `${p} up to ${cursor}`).join(', ')}`);
          this.counts.commits += 1;
          this.counts.fenced += sent.length - own.length;
          for (const { p, epoch, commitNo, cursor } of own) {
            const part = before.get(p);
            if (part?.['epoch'] !== epoch) this.breach('fence', `partition ${p}: a commit under epoch ${epoch} was accepted after ${part?.['epoch']}`);
            if (part?.['commit_no'] !== commitNo) this.breach('fence', `partition ${p}: commit ${commitNo} was accepted as ${part?.['commit_no']}`);
            this.takeOvers.committed(plan, { p, epoch, cursor }, { cursor: part?.['cursor'] as number, timerKeys: this.timerKeys });
            this.#timers.committed(plan, p);
          }
          afterLogs(result.owned);
          for (const letter of letters) if (!this.#tables.deadLetters.includes(letter)) this.#deletedLetters.add(letter['id']);
          for (const [id, p] of marked) if (result.owned.has(p)) this.#lookAtMark(id);
          for (const { key } of this.#tables.timers.values()) this.timerKeys.add(key as string);
          for (const { key, partition } of derived) if (result.owned.has(partition)) this.timerKeys.add(key);
        };
      },
    };
  }

  #lookAtMark(id: string): void {
    if (!this.#published.has(id) && this.#isOpen(id)) this.breach('outbox', `${id} was marked as published before it was`);
  }

  appended(entry: LogEntry): void {
    const command = commandIn(entry.body);
    this.history.push({ entry, command, isLost: false });
    if (command === null) return;
    this.#sessionOf.set(command.commandId, command.sessionId);
    if ('callId' in command) this.#reported.add(command.commandId);
  }

  /** The broker is about to lose what is stored behind a sequence. */
  losing(isKept: (entry: LogEntry) => boolean): void {
    this.takeOvers.logLost();
    for (const stored of this.history) {
      if (stored.isLost || isKept(stored.entry)) continue;
      stored.isLost = !this.isApplied(stored);
    }
  }

  /** Whether it was applied, or became a dead letter, which its session may have taken with it. */
  isApplied({ command, entry }: Stored): boolean {
    if (command !== null && this.#tables.seen.has(`${command.sessionId} ${command.commandId}`)) return true;
    return this.#deletedLetters.has(entry.messageId) || this.#tables.deadLetters.some(({ id }) => id === entry.messageId);
  }

  /** Commands that the log still has and that were not applied. */
  unapplied(): string[] {
    const waiting = this.history.filter((stored) => !stored.isLost && !this.isApplied(stored));
    return waiting.map(({ entry, command }) => `${command?.type ?? 'command'} ${entry.messageId} was accepted and not applied`);
  }

  published(kind: WorkKind, messageId: string, body: string): void {
    if (kind === 'router.turn') this.logs.prompted(messageId, body);
    this.#silentSinceMs.delete(messageId);
    this.#workerOf.delete(messageId);
    this.#published.add(messageId);
    if (!this.#tables.effects.has(messageId)) this.breach('work', `${messageId} was published before its effect was stored`);
  }

  dispatched(messageId: string, body: string): void {
    this.logs.prompted(messageId, body);
    this.counts.dispatches += 1;
    if (!this.#tables.effects.has(messageId)) this.breach('work', `${messageId} was dispatched before its effect was stored`);
    if (this.#isOpen(messageId)) this.#silentSinceMs.set(messageId, this.#scheduler.nowMs);
  }

  /** A worker was killed: the owners of what it had must notice. */
  lost(worker: Process): void {
    for (const [effectId, process] of this.#workerOf) if (process === worker) this.#silentSinceMs.set(effectId, this.#scheduler.nowMs);
  }

  /** Counts while a host that runs owns the partition. @param sinceMs since when all processes run and are connected */
  checkSilence(sinceMs: number): void {
    for (const [effectId, atMs] of this.#silentSinceMs) {
      // A message that was deleted meanwhile can't be rendered: its check ends by its own timer.
      if (!this.#isOpen(effectId) || effectId.endsWith('-moderation')) this.#silentSinceMs.delete(effectId);
      else if (!this.#hasOwner(effectId)) this.#silentSinceMs.set(effectId, this.#scheduler.nowMs);
      else if (this.#scheduler.nowMs - Math.max(atMs, sinceMs, this.#acquiredAtMs) > MOST_SILENCE_MS) {
        this.#silentSinceMs.delete(effectId);
        this.breach('dispatch', `${effectId} was lost, and was not sent again`);
      }
    }
  }

  handed(item: QueuedItem, consumer: Consumer): void {
    this.#silentSinceMs.delete(item.messageId);
    if (item.state === 'gone') this.#workerOf.set(item.messageId, consumer.process);
    const isMarked = item.delivery > 1 || item.body.includes('"republished":true');
    if (item.delivery > 1) this.counts.redeliveries += 1;
    const key = `${consumer.process.id} ${item.messageId}`;
    // Of several deliveries to one process it is unknown which goes on.
    this.#overAtDelivery.set(key, (this.#overAtDelivery.get(key) ?? true) && isMarked && !this.#isOpen(item.messageId));
  }

  begun(process: Process, effectId: string): void {
    if (this.#overAtDelivery.get(`${process.id} ${effectId}`) === true) this.breach('redelivery', `${effectId} was begun again though it was over`);
  }

  acked({ messageId, body }: QueuedItem): void {
    if (this.#reported.has(messageId) || !this.#isOpen(messageId)) return;
    const { deadlineAtMs } = JSON.parse(body) as { deadlineAtMs: number };
    // A round of a delivery that is too late is dropped: its timer opens another.
    if (this.#scheduler.nowMs + MOST_SKEW_MS >= deadlineAtMs) return;
    this.breach('ack', `${messageId} was settled before its result was stored`);
  }

  noticePublished(process: Process, subject: string, body: string): void {
    const [kind, token = ''] = subject.split('.');
    if (kind === 'evt') this.#lookAtNotice(token, JSON.parse(body) as NoticeMessage);
    if (kind === 'ans') this.#lookAtAnswer(JSON.parse(body) as ReplyMessage);
    if (kind === 'held' && token === 'probe') {
      const p = Number((JSON.parse(body) as { from: string }).from);
      this.owners.set(p, [...(this.owners.get(p) ?? []), process.id]);
    }
  }

  #lookAtNotice(session: string, { first, last, events, isDeleted }: NoticeMessage): void {
    this.counts.notices += 1;
    const row = this.#tables.sessions.get(session);
    if (row?.['deleted_at'] != null) return;
    const problem = isDeleted === true ? `${session} was announced as deleted before it was` : this.#untruthIn(session, first, last, events);
    if (problem !== null) this.breach('notice', problem);
  }

  #untruthIn(session: string, first: number, last: number, events: readonly string[] | null): string | null {
    for (let off = first; off <= last; off += 1) {
      const stored = this.#tables.events.get(session)?.get(off)?.['body'];
      if (stored === undefined) return `offset ${off} of ${session} was announced before it was stored`;
      if (events !== null && !isSameEvent(events[off - first], stored)) return `offset ${off} of ${session} was announced differently`;
    }
    return null;
  }

  #lookAtAnswer({ commandId, answer }: ReplyMessage): void {
    const seen = this.#tables.seen.get(`${this.#sessionOf.get(commandId)} ${commandId}`);
    if (seen === undefined) {
      if (answer.ok || answer.code !== 'internal') this.breach('notice', `${commandId} was answered before it was applied`);
    } else if (JSON.stringify(answer) !== seen['answer']) this.breach('answer', `${commandId} was answered differently`);
  }

  /** A dead owner of its partition has it until its heartbeat expires. */
  #hasOwner(effectId: string): boolean {
    const [effect] = this.#tables.effects.get(effectId) ?? [];
    const owner = this.#tables.parts.get(effect?.['p'] as number)?.['owner'];
    return this.#scheduler.processes.some(({ id, state }) => id === owner && state === 'up');
  }

  #isOpen(effectId: string): boolean {
    return (this.#tables.effects.get(effectId) ?? []).some(({ state }) => state === 'open');
  }
}

/** But for metadata, which may change. */
export function isSameEvent(left: unknown, right: unknown): boolean {
  return withoutMetadata(left) === withoutMetadata(right);
}

function withoutMetadata(body: unknown): string | undefined {
  return typeof body === 'string' ? JSON.stringify({ ...(JSON.parse(body) as object), metadata: null }) : undefined;
}

/** The owner notices after a silence of 15 s, by checks of a timer. */
const MOST_SILENCE_MS = 25_000;
/** Bound of the clocks' errors. */
export const MOST_SKEW_MS = 3_000;

function commandIn(body: string): SessionCommand | null {
  try {
    const value = JSON.parse(body) as SessionCommand;
    return typeof value.commandId === 'string' && !value.commandId.includes('\0') ? value : null;
  } catch {
    return null;
  }
}
