import type { StoredCommand, WorkItem, WorkKind } from '../../bus/bus.ts';
import type { Process, Scheduler, SimulatedTimer } from './scheduler.ts';

/** The deduplication windows of both streams, as they are declared. */
const DEDUPE_WINDOW_MS = 120_000;

export interface LogEntry extends StoredCommand {
  partition: number;
}

/** An item of work, queued or leased. */
export interface QueuedItem {
  kind: WorkKind;
  messageId: string;
  body: string;
  publishedAtMs: number;
  /** Deliveries so far. */
  delivery: number;
  /** Grows with each delivery, so that a former lease can't be extended. */
  lease: number;
  deliveredAtMs: number;
  state: 'ready' | 'leased' | 'delayed' | 'gone';
  timer: SimulatedTimer | null;
}

export interface Consumer {
  process: Process;
  kind: WorkKind;
  concurrency: number;
  ackWaitMs: number;
  inFlight: number;
  take(item: QueuedItem, lease: number): void;
  /** Begins a dispatched item. */
  begin(item: WorkItem): void;
  /** Puts a dispatched item on the queue, by the bus of the consumer. */
  store(item: Pick<QueuedItem, 'kind' | 'messageId' | 'body'>, earlierDeliveries: number): Promise<unknown>;
}

/** An item that may be delivered to a consumer. */
export interface Dispatch {
  item: QueuedItem;
  consumer: Consumer;
}

interface Listener {
  process: Process;
  key: string;
  /** A prefix of subjects, or one subject. */
  prefix: string;
  isExact: boolean;
  handler(subject: string, body: string): void;
}

/** A feed of a partition, notified when there is more. */
export interface Follower {
  process: Process;
  partition: number;
  wake(): void;
  breakOff(): void;
}

/** How the broker reports to the checks of the simulation. */
export interface BrokerWatch {
  appended(entry: LogEntry): void;
  published(kind: WorkKind, messageId: string, body: string): void;
  /** Sent, and stored nowhere. */
  dispatched(messageId: string, body: string): void;
  handed(item: QueuedItem, consumer: Consumer): void;
  acked(item: QueuedItem): void;
  noticePublished(process: Process, subject: string, body: string): void;
}

/** The broker: a log of commands, a queue of work, and notices without storage. */
export class ModelBroker {
  readonly #scheduler: Scheduler;
  readonly #watch: BrokerWatch;
  readonly process: Process;
  #logs = 1;
  created = 'log-1';
  entries = new Map<number, LogEntry>();
  first = 1;
  last = 0;
  #lastStoredAtMs = 0;
  #seen = new Map<string, { sequence: number; atMs: number }>();
  items: QueuedItem[] = [];
  #seenItems = new Map<string, number>();
  consumers: Consumer[] = [];
  #listeners: Listener[] = [];
  followers: Follower[] = [];
  #keys = 0;
  /** Items that were settled recently: a broker that restarts may have lost the acknowledgement. */
  #settled: QueuedItem[] = [];
  /** Aborted when the broker ends, with all connections. */
  session = new AbortController();
  onReconnects: { process: Process; handler(): void }[] = [];
  readonly #reconnects = new Map<Process, number>();
  #restarts = 0;
  #tags = 0;
  /** Processes with a half-open connection: nothing comes through in either direction, without an error. */
  readonly #cutOff = new Set<Process>();

  constructor(scheduler: Scheduler, watch: BrokerWatch) {
    this.#scheduler = scheduler;
    this.#watch = watch;
    this.process = scheduler.process('broker', 'broker');
  }

  nextKey(what: string): string {
    this.#keys += 1;
    return `${what}#${this.#keys}`;
  }

  /** Of a command within the dedupe window. */
  sequenceOf(wireId: string): number | null {
    const earlier = this.#seen.get(wireId);
    return earlier !== undefined && this.#scheduler.nowMs - earlier.atMs < DEDUPE_WINDOW_MS ? earlier.sequence : null;
  }

  /** @param wireId the id that is remembered: another one than the message's where it is stored again */
  append(partition: number, messageId: string, body: string, wireId = messageId): { sequence: number; duplicate: boolean } {
    const { nowMs } = this.#scheduler;
    const earlier = this.sequenceOf(wireId);
    if (earlier !== null) return { sequence: earlier, duplicate: true };
    this.last += 1;
    const entry = { sequence: this.last, messageId, body, partition, storedAtMs: this.#storedAt() };
    this.entries.set(this.last, entry);
    this.#seen.set(wireId, { sequence: this.last, atMs: nowMs });
    this.#scheduler.note(`stored ${this.last} for ${partition}: ${messageId}`);
    this.#watch.appended(entry);
    for (const follower of this.followers) if (follower.partition === partition) follower.wake();
    return { sequence: entry.sequence, duplicate: false };
  }

  /** Unique, as with a finer clock than this one; goes on when the log is rolled back. */
  #storedAt(): number {
    this.#lastStoredAtMs = Math.max(this.#scheduler.nowMs, this.#lastStoredAtMs + 1);
    return this.#lastStoredAtMs;
  }

  at(sequence: number): StoredCommand | null {
    const entry = this.entries.get(sequence);
    return entry === undefined ? null : { sequence, messageId: entry.messageId, body: entry.body, storedAtMs: entry.storedAtMs };
  }

  behind(partition: number, after: number): LogEntry[] {
    const found: LogEntry[] = [];
    for (const entry of this.entries.values()) if (entry.partition === partition && entry.sequence > after) found.push(entry);
    return found;
  }

  lastOf(partition: number): number {
    let last = 0;
    for (const entry of this.entries.values()) if (entry.partition === partition) last = entry.sequence;
    return last;
  }

  purge(below: number): void {
    const end = Math.min(below, this.last + 1);
    for (const sequence of this.entries.keys()) if (sequence < end) this.entries.delete(sequence);
    this.first = Math.max(this.first, end);
  }

  /** Whether an item is within the dedupe window. */
  hasItem(wireId: string): boolean {
    const seenAtMs = this.#seenItems.get(wireId);
    return seenAtMs !== undefined && this.#scheduler.nowMs - seenAtMs < DEDUPE_WINDOW_MS;
  }

  /** @param wireId the id that is remembered: another one than the item's where it is stored again */
  publish(kind: WorkKind, messageId: string, body: string, earlierDeliveries = 0, wireId = messageId): { duplicate: boolean } {
    const { nowMs } = this.#scheduler;
    this.#watch.published(kind, messageId, body);
    if (this.hasItem(wireId)) return { duplicate: true };
    this.#seenItems.set(wireId, nowMs);
    this.items.push({ kind, messageId, body, publishedAtMs: nowMs, delivery: earlierDeliveries, lease: 0, deliveredAtMs: 0, state: 'ready', timer: null });
    return { duplicate: false };
  }

  /** Those that a dispatch may be delivered to. */
  subscribers(kind: WorkKind): Consumer[] {
    return this.consumers.filter((consumer) => consumer.kind === kind && consumer.process.state !== 'dead' && !this.isCutOff(consumer.process));
  }

  dispatched(messageId: string, body: string): void {
    this.#watch.dispatched(messageId, body);
  }

  /** Of a delivery's attempt: counted here for all processes, so that a schedule is the same again. */
  nextTag(): number {
    this.#tags += 1;
    return this.#tags;
  }

  /** A dispatch is begun: it is delivered once. */
  deliverDispatched(consumer: Consumer, { kind, messageId, body }: Pick<QueuedItem, 'kind' | 'messageId' | 'body'>): void {
    const { nowMs: publishedAtMs } = this.#scheduler;
    this.#watch.handed({ kind, messageId, body, publishedAtMs, delivery: 1, lease: 0, deliveredAtMs: publishedAtMs, state: 'gone', timer: null }, consumer);
  }

  /** Each item that could be delivered now, with its consumer. */
  dispatches(): Dispatch[] {
    const dispatches: Dispatch[] = [];
    for (const item of this.items) {
      if (item.state !== 'ready') continue;
      for (const consumer of this.consumers) {
        if (consumer.kind === item.kind && consumer.process.state === 'up' && consumer.inFlight < consumer.concurrency) dispatches.push({ item, consumer });
      }
    }
    return dispatches;
  }

  hand({ item, consumer }: Dispatch): void {
    item.state = 'leased';
    item.delivery += 1;
    item.lease += 1;
    item.deliveredAtMs = this.#scheduler.nowMs;
    this.#lapseAfter(item, consumer.ackWaitMs);
    this.#watch.handed(item, consumer);
    consumer.take(item, item.lease);
  }

  extend(item: QueuedItem, lease: number, ackWaitMs: number): boolean {
    if (item.state !== 'leased' || item.lease !== lease) return false;
    this.#lapseAfter(item, ackWaitMs);
    return true;
  }

  settle(item: QueuedItem): void {
    if (item.state === 'gone') return;
    this.#watch.acked(item);
    this.#clearTimer(item);
    item.state = 'gone';
    this.items.splice(this.items.indexOf(item), 1);
    this.#settled = [...this.#settled.slice(-4), item];
  }

  putOff(item: QueuedItem, lease: number, delayMs: number): void {
    if (item.state !== 'leased' || item.lease !== lease) return;
    this.#clearTimer(item);
    item.state = 'delayed';
    item.timer = this.#scheduler.setTimer(this.process, () => this.#makeReady(item), delayMs, null);
  }

  publishNotice(process: Process, subject: string, body: string): void {
    this.#watch.noticePublished(process, subject, body);
    if (this.isCutOff(process)) return;
    for (const { prefix, isExact, handler, key, process: listener } of this.#listeners) {
      if (this.isCutOff(listener)) continue;
      if (isExact ? subject !== prefix : !subject.startsWith(prefix)) continue;
      this.#scheduler.post(listener, key, `receives ${isExact ? prefix : prefix.slice(0, 3)}`, () => handler(subject, body));
    }
  }

  listen(process: Process, pattern: string, handler: (subject: string, body: string) => void): () => void {
    const isExact = !pattern.includes('*');
    const listener: Listener = { process, key: this.nextKey('sub'), prefix: isExact ? pattern : pattern.slice(0, pattern.indexOf('*')), isExact, handler };
    this.#listeners.push(listener);
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener);
    };
  }

  /** Of a process; another number than before: notices to it were lost. */
  connectionOf(process: Process): number {
    return this.#restarts + (this.#reconnects.get(process) ?? 0);
  }

  isCutOff(process: Process): boolean {
    return this.#cutOff.has(process);
  }

  cutOff(process: Process): void {
    this.#cutOff.add(process);
  }

  /** A process reconnects: its feeds begin again, and notices of the meantime are lost. */
  reconnect(process: Process): void {
    if (this.#cutOff.delete(process)) this.reconnected(process);
  }

  reconnected(process: Process): void {
    this.#reconnects.set(process, (this.#reconnects.get(process) ?? 0) + 1);
    for (const follower of this.followers.filter((one) => one.process === process)) follower.breakOff();
    for (const { process: listener, handler } of this.onReconnects) {
      if (listener === process) this.#scheduler.post(process, this.nextKey('reconnect'), 'reconnects', handler);
    }
  }

  /** A process has ended: nothing is delivered to it any more; its items are redelivered when their leases expire. */
  forget(process: Process): void {
    this.#cutOff.delete(process);
    this.consumers = this.consumers.filter((one) => one.process !== process);
    this.#listeners = this.#listeners.filter((one) => one.process !== process);
    this.followers = this.followers.filter((one) => one.process !== process);
    this.onReconnects = this.onReconnects.filter((one) => one.process !== process);
  }

  /** Stops and starts again: readers begin anew, notices in flight are lost, and its last operations may be lost. */
  restart({ forgets }: { forgets: boolean }): void {
    if (forgets) {
      this.#seen.clear();
      this.#seenItems.clear();
      for (const item of this.#settled) this.items.push({ ...item, state: 'ready', delivery: Math.max(0, item.delivery - 1), timer: null });
    }
    for (const item of this.items) if (item.state === 'leased') this.#makeReady(item);
    this.#settled = [];
    this.#restarts += 1;
    this.session.abort();
    this.session = new AbortController();
    for (const follower of [...this.followers]) follower.breakOff();
    for (const { process, handler } of this.onReconnects) this.#scheduler.post(process, this.nextKey('reconnect'), 'reconnects', handler);
  }

  /**
   * Another of three servers leads. It has what a majority has stored, which is all that was acknowledged. Feeds at the lost server end. A delivery may
   * be unknown to it: it delivers the item again and counts it anew, while its worker runs on. The former leader may deliver once more what was settled since.
   * @param isLost asked for each of these
   * @param unknownMs only deliveries that are no older may be unknown to it
   */
  changeLeader(isLost: () => boolean, unknownMs = Number.POSITIVE_INFINITY): void {
    for (const follower of [...this.followers]) if (isLost()) follower.breakOff();
    for (const item of this.items) {
      if (item.state !== 'leased' || !isLost() || this.#scheduler.nowMs - item.deliveredAtMs > unknownMs) continue;
      item.delivery -= 1;
      this.#makeReady(item);
    }
    for (const item of this.#settled.splice(0))
      if (isLost()) this.items.push({ ...item, state: 'ready', delivery: Math.max(0, item.delivery - 1), timer: null });
  }

  /** The log as it was when it ended at the sequence, and a queue without later items; both lose their deduplication windows. */
  rollBack(toSequence: number): void {
    this.#scheduler.note(`the log ends at ${toSequence} instead of ${this.last}`);
    for (const sequence of this.entries.keys()) if (sequence > toSequence) this.entries.delete(sequence);
    this.last = Math.min(this.last, toSequence);
    this.first = Math.min(this.first, this.last + 1);
    this.#loseWork();
    this.restart({ forgets: true });
  }

  /** Another log, and an empty queue. */
  lose(): void {
    this.#logs += 1;
    this.created = `log-${this.#logs}`;
    this.entries.clear();
    this.first = 1;
    this.last = 0;
    this.#loseWork();
    this.restart({ forgets: true });
  }

  #loseWork(): void {
    for (const item of this.items) {
      this.#clearTimer(item);
      item.state = 'gone';
    }
    this.items = [];
    this.#settled = [];
  }

  #lapseAfter(item: QueuedItem, ackWaitMs: number): void {
    this.#clearTimer(item);
    item.timer = this.#scheduler.setTimer(this.process, () => this.#makeReady(item), ackWaitMs, null);
  }

  #makeReady(item: QueuedItem): void {
    if (item.state === 'gone') return;
    this.#clearTimer(item);
    item.state = 'ready';
  }

  #clearTimer(item: QueuedItem): void {
    if (item.timer !== null) this.#scheduler.clear(item.timer);
    item.timer = null;
  }
}
