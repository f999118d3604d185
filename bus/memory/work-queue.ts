import { QueueingDelay } from '#shared/admission.ts';
import { DeadlineTimer } from '#shared/deadline-timer.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ConsumeOptions, DispatchedKind, Subscription, WorkItem, WorkKind, WorkQueue } from '../bus.ts';
import { maxDispatchBytes } from '../dispatch-limits.ts';
import { assertDispatchable, DispatchReports } from '../dispatch-reports.ts';
import { type DispatchedBody, dispatchedBody, dispatchedItem, textOfBody } from '../dispatched-item.ts';
import { logFailedHandler } from '../failed-handler.ts';
import { lostLease } from '../lost-lease.ts';
import { perWorkKind } from '../work-queues.ts';
import { DEDUPE_WINDOW_MS, DedupeWindow } from './dedupe-window.ts';
import { isBelowCapacity } from './limits.ts';
import type { Bounded, Closable, ComponentDeps } from './types.ts';
import { type Consumer, newConsumer, nextConsumer } from './work-consumers.ts';
import { type WorkRow, WorkStore } from './work-store.ts';

/** Older items are dropped; every deadline is long past by then. */
const MAX_AGE_MS = 24 * 3_600_000;
/** Each item has an entry in memory. Past it new ones are refused. */
const MAX_ITEMS = 100_000;
/** Bodies cached in memory; others are read from the table on delivery. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** In exactly one of `ready`, `leased` and `delayed` until removed. */
interface Entry {
  row: WorkRow;
  body: string | null;
  /** When the lease expires or the delay ends, by `performance.now()`; unused while ready. */
  dueAt: number;
  removed: boolean;
}

interface KindQueue {
  /** Items in any state. */
  items: number;
  /** In order of delivery. A set: a late ack removes from the middle. */
  ready: Set<Entry>;
  /** Least recently served first. */
  consumers: Consumer[];
  /** Deliveries since the start. */
  delivered: number;
  queueingDelay: QueueingDelay;
}

interface Admitting {
  /** False while new items would wait too long. */
  admits(kind: WorkKind): boolean;
}

/** The work queue: items in a table, leases in memory, since only this process delivers. */
export async function openWorkQueue(deps: ComponentDeps): Promise<WorkQueue & Admitting & Bounded & Closable> {
  const store = new WorkStore(deps);
  const rows = await store.recover(deps.clock.nowMs() - MAX_AGE_MS);
  return new MemoryWorkQueue(deps, store, rows);
}

class MemoryWorkQueue implements WorkQueue, Admitting, Bounded, Closable {
  readonly #deps: ComponentDeps;
  readonly #store: WorkStore;
  readonly #kinds = new Map<string, KindQueue>();
  readonly #leased = new Set<Entry>();
  readonly #delayed = new Set<Entry>();
  readonly #seen: DedupeWindow<{ stored: Promise<void> | null }>;
  readonly #timer = new DeadlineTimer(() => this.#onDue());
  readonly #refusals = new DispatchReports();
  readonly #stored = new DispatchReports();
  readonly earliestDispatchAtMs: number;
  #lastId = 0;
  #items = 0;
  #storedBytes = 0;
  #cachedBytes = 0;
  #closing: 'no' | 'readers' | 'all' = 'no';

  /** @param rows left by an earlier process: ready at once, as redeliveries, since their delivery may have begun */
  constructor(deps: ComponentDeps, store: WorkStore, rows: WorkRow[]) {
    this.#deps = deps;
    this.earliestDispatchAtMs = deps.clock.nowMs();
    this.#store = store;
    this.#seen = new DedupeWindow(deps.clock);
    const dedupedSinceMs = deps.clock.nowMs() - DEDUPE_WINDOW_MS;
    for (const row of rows) {
      if (row.publishedAtMs > dedupedSinceMs) this.#seen.add(row.messageId, { stored: null }, row.publishedAtMs);
      this.#lastId = row.id;
      this.#kind(row.kind).ready.add(this.#admit(row, null));
    }
  }

  async publish(kind: WorkKind, messageId: string, body: string, earlierDeliveries = 0): Promise<{ duplicate: boolean }> {
    this.#assertOpen();
    const earlier = this.#seen.find(messageId);
    if (earlier !== null) {
      if (earlier.stored !== null) await earlier.stored;
      return { duplicate: true };
    }
    this.#store.assertCapacity();
    if (this.#items >= MAX_ITEMS || this.#storedBytes >= this.#deps.limits.workBytes) throw new SwitchyardError('bus.full', 'the work queue is full');
    this.#lastId += 1;
    const publishedAtMs = this.#deps.clock.nowMs();
    const row: WorkRow = { id: this.#lastId, kind, messageId, sizeBytes: Buffer.byteLength(body), publishedAtMs, delivery: 1 + earlierDeliveries };
    const entry = this.#admit(row, body);
    const seen: { stored: Promise<void> | null } = { stored: this.#store.insert(row, body) };
    this.#seen.add(messageId, seen);
    try {
      await seen.stored;
    } catch (error) {
      this.#seen.delete(messageId);
      this.#discount(entry);
      throw error;
    }
    seen.stored = null;
    this.#kind(kind).ready.add(entry);
    this.#deliver(kind);
    return { duplicate: false };
  }

  dispatch(kind: DispatchedKind, messageId: string, bytes: Uint8Array): void {
    assertDispatchable(messageId);
    const body = dispatchedBody(bytes);
    const { consumers, ready } = this.#kind(kind);
    // Queued items go first.
    const consumer = ready.size > 0 ? null : nextConsumer(consumers);
    if (consumer !== null) this.#assign(kind, consumer, () => this.#handleDispatched(kind, messageId, body, consumer));
    else if (consumers.length > 0) this.#storeDispatched(kind, messageId, body);
    else setImmediate(() => this.#refusals.notify(messageId));
  }

  maxDispatchBytes(): number {
    return maxDispatchBytes();
  }

  onRefused(handler: (messageId: string) => void): Subscription {
    return this.#refusals.subscribe(handler);
  }

  onStored(handler: (messageId: string) => void): Subscription {
    return this.#stored.subscribe(handler);
  }

  consume(kind: WorkKind, options: ConsumeOptions, handler: (item: WorkItem) => Promise<void>): Subscription {
    if (this.#closing !== 'no') throw new SwitchyardError('bus.closed', 'the bus is closed');
    const { consumers } = this.#kind(kind);
    const consumer = newConsumer(options, handler);
    consumers.push(consumer);
    this.#deliver(kind);
    return {
      stop: async () => {
        const index = consumers.indexOf(consumer);
        if (index >= 0) consumers.splice(index, 1);
        consumer.stopping.abort();
        await Promise.all(consumer.inFlight);
      },
    };
  }

  /** It can't be lost without the effects, in the same database. */
  async createdAtMs(): Promise<number> {
    return 0;
  }

  onRestart(): Subscription {
    return { stop: async () => {} };
  }

  async depths(): Promise<Record<WorkKind, number>> {
    this.#assertOpen();
    return perWorkKind((kind) => this.#kind(kind).items);
  }

  hasCapacity(): boolean {
    return isBelowCapacity(this.#items, MAX_ITEMS) && isBelowCapacity(this.#storedBytes, this.#deps.limits.workBytes);
  }

  admits(kindName: WorkKind): boolean {
    const { queueingDelay, ready, delivered } = this.#kind(kindName);
    const nowMs = performance.now();
    if (queueingDelay.isDue(nowMs)) queueingDelay.sample({ atMs: nowMs, waiting: ready.size, dequeued: delivered });
    return queueingDelay.admits(nowMs);
  }

  async stopReaders(): Promise<void> {
    if (this.#closing === 'no') this.#closing = 'readers';
    const consumers = [...this.#kinds.values()].flatMap((kind) => kind.consumers.splice(0));
    for (const { stopping } of consumers) stopping.abort();
    await Promise.all(consumers.flatMap(({ inFlight }) => [...inFlight]));
  }

  async shut(): Promise<void> {
    this.#closing = 'all';
    this.#timer.clear();
    await this.#store.idle();
  }

  #deliver(kindName: string): void {
    const kind = this.#kind(kindName);
    const { ready, consumers } = kind;
    for (const entry of ready) {
      const consumer = nextConsumer(consumers);
      if (consumer === null) return;
      ready.delete(entry);
      kind.delivered += 1;
      this.#leased.add(entry);
      this.#renew(entry, consumer.ackWaitMs);
      this.#assign(kindName, consumer, () => this.#handle(entry, consumer));
    }
  }

  #assign(kindName: string, consumer: Consumer, handle: () => Promise<void>): void {
    const handled = Promise.resolve()
      .then(handle)
      .then(() => {
        consumer.inFlight.delete(handled);
        this.#deliver(kindName);
      });
    consumer.inFlight.add(handled);
  }

  /** Never rejects. Dispatched items are neither counted nor stored. */
  async #handleDispatched(kind: WorkKind, messageId: string, body: DispatchedBody, { ackWaitMs, handler, stopping }: Consumer): Promise<void> {
    const { clock, log } = this.#deps;
    const item = dispatchedItem({
      kind,
      messageId,
      body,
      publishedAtMs: clock.nowMs(),
      ackWaitMs,
      deliveredAt: performance.now(),
      assertOpen: () => this.#assertOpen(),
      confirmConnected: async () => performance.now(),
      store: () => this.#storeOnBehalf(kind, messageId, body, 1),
      stopping: stopping.signal,
      log,
    });
    try {
      await handler(item);
    } catch (error) {
      log.error({ err: error, kind, message_id: messageId }, 'the handler of a dispatched item failed: its publisher queues the item');
    }
  }

  /** If the store fails, the publisher publishes it later, for want of progress. */
  #storeDispatched(kind: DispatchedKind, messageId: string, body: DispatchedBody): void {
    const lost = (error: unknown) =>
      this.#deps.log.warn({ err: error, kind, message_id: messageId }, 'a dispatched item that found no free slot could not be stored');
    this.#storeOnBehalf(kind, messageId, body, 0).catch(lost);
  }

  async #storeOnBehalf(kind: WorkKind, messageId: string, body: DispatchedBody, earlierDeliveries: number): Promise<void> {
    await this.publish(kind, messageId, textOfBody(body), earlierDeliveries);
    this.#stored.notify(messageId);
  }

  /** Never rejects. Resolves with the handler's return. */
  async #handle(entry: Entry, consumer: Consumer): Promise<void> {
    const { id, kind, messageId, publishedAtMs, delivery } = entry.row;
    try {
      if (publishedAtMs < this.#deps.clock.nowMs() - MAX_AGE_MS) {
        this.#deps.log.warn({ kind, message_id: messageId, published_at_ms: publishedAtMs }, 'a work item was dropped because of its age');
        return await this.#remove(entry);
      }
      const body = entry.body ?? (await this.#store.body(id));
      // An earlier delivery was acknowledged meanwhile.
      if (body === null) return;
      if (this.#hasLease(entry, delivery)) await consumer.handler(this.#item(entry, body, delivery, consumer.ackWaitMs));
      else
        this.#deps.log.warn(lostLease({ messageId, deliveryCount: delivery }, kind), 'a work item was read after its lease, and is left to its next delivery');
    } catch (error) {
      logFailedHandler(this.#deps.log, kind, { messageId, deliveryCount: delivery }, error);
    }
  }

  #hasLease(entry: Entry, delivery: number): boolean {
    return this.#leased.has(entry) && entry.row.delivery === delivery;
  }

  #item(entry: Entry, body: string, delivery: number, ackWaitMs: number): WorkItem {
    const { kind, messageId, publishedAtMs } = entry.row;
    let settled = false;
    const once = async (settle: () => Promise<void>) => {
      this.#assertOpen();
      if (settled) return;
      settled = true;
      await settle();
    };
    return {
      messageId,
      body,
      deliveryCount: delivery,
      publishedAtMs,
      // Also after a lost lease: the work is done.
      ack: () => once(() => this.#remove(entry)),
      term: (reason) =>
        once(() => {
          this.#deps.log.error({ kind, message_id: messageId, delivery, reason }, 'a work item was dropped by its handler');
          return this.#remove(entry);
        }),
      nak: (delayMs) => once(async () => (this.#hasLease(entry, delivery) ? this.#sendBack(entry, delayMs) : undefined)),
      working: async () => {
        this.#assertOpen();
        if (settled || !this.#hasLease(entry, delivery)) throw new SwitchyardError('bus.lease_lost', `the lease of work item ${messageId} is lost`);
        this.#renew(entry, ackWaitMs);
      },
    };
  }

  /** Returns the next due instant. */
  #onDue(): number {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#leased) {
      if (entry.dueAt > now) next = Math.min(next, entry.dueAt);
      else {
        const { kind, messageId, delivery } = entry.row;
        this.#deps.log.warn({ kind, message_id: messageId, delivery }, 'the lease of a work item has expired: the item is redelivered');
        this.#sendBack(entry, 0).catch((error) => {
          // Right in memory; on disk one too low until the next delivery or start.
          this.#deps.log.error({ err: error, kind, message_id: messageId }, 'a redelivery could not be counted');
        });
      }
    }
    for (const entry of this.#delayed) {
      if (entry.dueAt > now) next = Math.min(next, entry.dueAt);
      else {
        this.#delayed.delete(entry);
        this.#makeReady(entry);
      }
    }
    return next;
  }

  async #sendBack(entry: Entry, delayMs: number): Promise<void> {
    this.#leased.delete(entry);
    entry.row.delivery += 1;
    if (delayMs > 0) {
      entry.dueAt = performance.now() + delayMs;
      this.#delayed.add(entry);
      this.#timer.schedule(entry.dueAt);
    } else this.#makeReady(entry);
    await this.#store.redeliver(entry.row.id, entry.row.delivery);
  }

  async #remove(entry: Entry): Promise<void> {
    if (entry.removed) return;
    entry.removed = true;
    for (const set of [this.#leased, this.#delayed, this.#kind(entry.row.kind).ready]) set.delete(entry);
    try {
      await this.#store.remove(entry.row.id);
    } catch (error) {
      // The row still exists.
      entry.removed = false;
      entry.row.delivery += 1;
      this.#makeReady(entry);
      throw error;
    }
    this.#discount(entry);
  }

  #makeReady(entry: Entry): void {
    this.#kind(entry.row.kind).ready.add(entry);
    this.#deliver(entry.row.kind);
  }

  #renew(entry: Entry, ackWaitMs: number): void {
    entry.dueAt = performance.now() + ackWaitMs;
    this.#timer.schedule(entry.dueAt);
  }

  #admit(row: WorkRow, body: string | null): Entry {
    const isCached = body !== null && this.#cachedBytes + row.sizeBytes <= MAX_CACHED_BYTES;
    this.#items += 1;
    this.#kind(row.kind).items += 1;
    this.#storedBytes += row.sizeBytes;
    if (isCached) this.#cachedBytes += row.sizeBytes;
    return { row, body: isCached ? body : null, dueAt: 0, removed: false };
  }

  #discount(entry: Entry): void {
    this.#items -= 1;
    this.#kind(entry.row.kind).items -= 1;
    this.#storedBytes -= entry.row.sizeBytes;
    if (entry.body !== null) this.#cachedBytes -= entry.row.sizeBytes;
  }

  #kind(name: string): KindQueue {
    const known = this.#kinds.get(name);
    if (known !== undefined) return known;
    const fresh: KindQueue = { items: 0, ready: new Set(), consumers: [], delivered: 0, queueingDelay: new QueueingDelay() };
    this.#kinds.set(name, fresh);
    return fresh;
  }

  #assertOpen(): void {
    if (this.#closing === 'all') throw new SwitchyardError('bus.closed', 'the bus is closed');
  }
}
