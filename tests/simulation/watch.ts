import { isCommit } from '../../actors/store/commit-statement.ts';
import type { WorkKind } from '../../bus/bus.ts';
import type { NoticeMessage, ReplyMessage, SessionCommand } from '../../bus/messages/session.ts';
import type { NamedStatement } from '../../shared/storage/database.ts';
import type { EnvironmentWatch } from './environment.ts';
import type { BrokerWatch, Consumer, LogEntry, QueuedItem } from './model-broker.ts';
import type { ModelTables } from './model-rows.ts';
import type { Process, Scheduler } from './scheduler.ts';

/** What becomes of a statement is told to it. */
interface Look {
  done(rows: readonly object[]): void;
  /** @param code the SQLSTATE */
  failed(code: string): void;
}

/** A command that the log has taken. */
export interface Stored {
  entry: LogEntry;
  /** Null for what is none. */
  command: SessionCommand | null;
  /** The broker has lost it, and it had not been applied. */
  isLost: boolean;
}

/**
 * Looks at every moment of a simulation from above: it sees the rows and the broker as they are, and holds what is done, said, published
 * and settled against them at once, since most breaches are healed later and would never be seen.
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
  /** Of marked items: whether their effect was over when they were handed out, by process and effect. */
  readonly #overAtHand = new Map<string, boolean>();
  /** Who answers for a partition, as asked at the end. */
  readonly owners = new Map<number, string[]>();
  readonly counts = { commits: 0, takes: 0, fenced: 0, notices: 0, redeliveries: 0 };

  constructor(scheduler: Scheduler, tables: ModelTables) {
    this.#scheduler = scheduler;
    this.#tables = tables;
  }

  breach(rule: string, what: string): void {
    this.violations.push(`${rule}: ${what} (step ${this.#scheduler.steps})`);
  }

  /** Looks at a statement before it is carried out. @returns what looks at its result, and at its failure */
  statement(statement: string | NamedStatement, parameters: readonly unknown[]): Look {
    const name = typeof statement === 'string' ? '' : statement.name;
    if (isCommit(statement)) return this.#commit(parameters);
    const done = (rows: readonly object[]) => {
      if (name === 'take-partitions') this.counts.takes += rows.length;
    };
    return { done, failed: () => {} };
  }

  #commit(parameters: readonly unknown[]): Look {
    const [partitions, epochs, commitNos] = parameters as [number[], number[], number[]];
    const before = partitions.map((p) => ({ ...this.#tables.parts.get(p) }));
    const outbox = this.#tables.outbox;
    const isOld = before.every((part, index) => part['epoch'] !== epochs[index] || part['commit_no'] !== commitNos[index]);
    const failed = (code: string) => {
      if (isOld && code === '23505') this.breach('fence', 'a commit whose time was over got as far as its rows');
    };
    const done = (rows: readonly object[]) => {
      const [{ owned = [] } = {}] = rows as readonly { owned?: number[] }[];
      const cursors = parameters[3] as number[];
      this.#scheduler.note(`committed ${owned.map((p) => `${p} up to ${cursors[partitions.indexOf(p)]}`).join(', ')}`);
      this.counts.commits += 1;
      this.counts.fenced += partitions.length - owned.length;
      for (const [index, p] of partitions.entries()) {
        if (!owned.includes(p)) continue;
        const part = before[index];
        if (part?.['epoch'] !== epochs[index])
          this.breach('fence', `partition ${p}: a commit under epoch ${epochs[index]} was accepted after ${part?.['epoch']}`);
        if (part?.['commit_no'] !== commitNos[index]) this.breach('fence', `partition ${p}: commit ${commitNos[index]} was accepted as ${part?.['commit_no']}`);
      }
      this.#lookAtOutbox(outbox);
      for (const { key } of this.#tables.timers.values()) this.timerKeys.add(key as string);
    };
    return { done, failed };
  }

  #lookAtOutbox(before: readonly Record<string, unknown>[]): void {
    if (before === this.#tables.outbox) return;
    for (const { id } of before) {
      if (this.#published.has(id as string) || this.#tables.outbox.some((row) => row['id'] === id)) continue;
      if (this.#isOpen(id as string)) this.breach('outbox', `the row of ${id} went before it was published`);
    }
  }

  appended(entry: LogEntry): void {
    const command = commandIn(entry.body);
    this.history.push({ entry, command, isLost: false });
    if (command === null) return;
    this.#sessionOf.set(command.commandId, command.sessionId);
    if ('callId' in command) this.#reported.add(command.commandId);
  }

  /** The broker is about to lose what it holds behind a place. */
  losing(isKept: (entry: LogEntry) => boolean): void {
    for (const stored of this.history) {
      if (stored.isLost || isKept(stored.entry)) continue;
      stored.isLost = !this.isApplied(stored);
    }
  }

  /** Whether it was applied, or buried. */
  isApplied({ command, entry }: Stored): boolean {
    if (command !== null && this.#tables.seen.has(`${command.sessionId} ${command.commandId}`)) return true;
    return this.#tables.deadLetters.some(({ id }) => id === entry.messageId);
  }

  /** What the log has kept and nobody has applied. */
  unapplied(): string[] {
    const waiting = this.history.filter((stored) => !stored.isLost && !this.isApplied(stored));
    return waiting.map(({ entry, command }) => `${command?.type ?? 'command'} ${entry.messageId} was accepted and not applied`);
  }

  published(_kind: WorkKind, messageId: string): void {
    this.#published.add(messageId);
    if (!this.#tables.effects.has(messageId)) this.breach('work', `${messageId} was published before its effect was stored`);
  }

  handed(item: QueuedItem, consumer: Consumer): void {
    const isMarked = item.delivery > 1 || item.body.includes('"republished":true');
    if (item.delivery > 1) this.counts.redeliveries += 1;
    const key = `${consumer.process.id} ${item.messageId}`;
    // Of several deliveries to one process nobody can tell which goes on.
    this.#overAtHand.set(key, (this.#overAtHand.get(key) ?? true) && isMarked && !this.#isOpen(item.messageId));
  }

  begun(process: Process, effectId: string): void {
    if (this.#overAtHand.get(`${process.id} ${effectId}`) === true) this.breach('redelivery', `${effectId} was begun again though it was over`);
  }

  acked({ messageId, body }: QueuedItem): void {
    if (this.#reported.has(messageId) || !this.#isOpen(messageId)) return;
    const { deadlineAtMs } = JSON.parse(body) as { deadlineAtMs: number };
    // A round of a delivery that comes too late is dropped: its timer makes another.
    if (this.#scheduler.nowMs + MOST_SKEW_MS >= deadlineAtMs) return;
    this.breach('ack', `${messageId} was settled before its result was stored`);
  }

  said(process: Process, subject: string, body: string): void {
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
    const problem = isDeleted === true ? `${session} was said to be deleted before it was` : this.#untruthIn(session, first, last, events);
    if (problem !== null) this.breach('notice', problem);
  }

  #untruthIn(session: string, first: number, last: number, events: readonly string[] | null): string | null {
    for (let off = first; off <= last; off += 1) {
      const stored = this.#tables.events.get(session)?.get(off)?.['body'];
      if (stored === undefined) return `offset ${off} of ${session} was told before it was stored`;
      if (events !== null && events[off - first] !== stored) return `offset ${off} of ${session} was told differently`;
    }
    return null;
  }

  #lookAtAnswer({ commandId, answer }: ReplyMessage): void {
    const seen = this.#tables.seen.get(`${this.#sessionOf.get(commandId)} ${commandId}`);
    if (seen === undefined) {
      if (answer.ok || answer.code !== 'internal') this.breach('notice', `${commandId} was answered before it was applied`);
    } else if (JSON.stringify(answer) !== seen['answer']) this.breach('answer', `${commandId} was answered differently`);
  }

  #isOpen(effectId: string): boolean {
    return (this.#tables.effects.get(effectId) ?? []).some(({ state }) => state === 'open');
  }
}

/** No clock is further off. */
export const MOST_SKEW_MS = 3_000;

function commandIn(body: string): SessionCommand | null {
  try {
    const value = JSON.parse(body) as SessionCommand;
    return typeof value.commandId === 'string' && !value.commandId.includes('\0') ? value : null;
  } catch {
    return null;
  }
}
