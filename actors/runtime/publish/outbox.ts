import type { Bus, WorkKind } from '#bus/bus.ts';
import type { NoticeMessage, ReplyMessage } from '#bus/messages/session.ts';
import { addresses, isToken, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { failPoint } from '#shared/fail-points.ts';
import { ObjectMap } from '#shared/object-map.ts';
import { SlotMap } from '#shared/slot-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import { within } from '#shared/within.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import type { EffectStore } from '../../store/port/effect-store.ts';
import type { CommitPlan } from '../apply/commit-plan.ts';
import type { AfterCommit } from '../apply/commit-rows.ts';
import { DispatchedEffects } from './dispatched-effects.ts';
import { Unrenderable } from './unrenderable.ts';

/** Larger notices omit their events, and readers fetch those by offset. */
const MAX_NOTICE_BYTES = 32 * 1_024;
/** Effects rendered and published concurrently. */
const MAX_PUBLISHING = 32;
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 5_000;
/**
 * Clocks of hosts and broker differ: effects up to this much newer than the work queue count as lost with its predecessor. Publishing too many is
 * harmless: the queue dedupes by id, or the worker checks the effect's row.
 */
const CLOCK_MARGIN_MS = 60_000;
/** A longer one is stored as a blob, once. */
const MAX_DISPATCH_BYTES = 512 * 1_024;

/** Of an effect that is published and not dispatched. */
interface QueuedDelivery {
  /** The item may have been on the bus. */
  republished: boolean;
  /** Dispatches that a worker may have got. */
  earlierDeliveries: number;
}

interface Requested {
  effect: EffectRow;
  /** Null: it is dispatched, if its kind is. */
  queued: QueuedDelivery | null;
  /** Before the next try; doubled each time. */
  pauseMs: number;
}

const NEVER_DELIVERED: QueuedDelivery = { republished: false, earlierDeliveries: 0 };
/** What may have been on the bus before. */
const REPUBLISHED: QueuedDelivery = { republished: true, earlierDeliveries: 0 };
/** What a worker may have begun. */
const REDISPATCHED: QueuedDelivery = { republished: true, earlierDeliveries: 1 };
/** Its effects are dispatched. */
const DISPATCHED_KIND = 'router.turn';
/** Longest wait for the dispatches of partitions that are released. */
const HAND_OVER_MS = 500;

type EffectInPartition = Pick<EffectRow, 'id' | 'partition'>;

/** After the publish's acknowledgement, unless the effect ends before. */
const MARK_WITHIN_MS = 500;

export interface OutboxDeps {
  bus: Bus;
  clock: Clock;
  log: Log;
  /** The queue of a kind of effect. */
  workOf(kind: string): WorkKind;
  /** A dispatched call that no heartbeat has named for so long is lost. */
  callSilenceMs: number;
  /** Up to which command this host has committed; null: it does not own the partition. */
  cursorOf(partition: number): number | null;
  /** False: other hosts may have acquired the partitions of this one, which was paused. Nothing dedupes a dispatch, so a late one is not sent. */
  isOwner(): boolean;
  /** `republished`: the item may have been on the bus before. */
  render(effect: EffectRow, republished: boolean): Promise<string>;
  /** Published effects wait for a commit that marks them. */
  onRowsDone(): void;
  /** Not published before its deadline, or not renderable: reports it to the owner by a command, so that it does not wait for ever. */
  fail(effect: EffectRow, error: unknown): void;
}

/**
 * Publishes what follows from commits. A work item is published under the effect's id until the bus acknowledges it; only then its row is marked as
 * published, so after a crash the next owner finds it. The row of an effect that ends before is never marked: it is open no more (ADR 133). Notices, replies and aborts are sent once and may be lost; receivers check for themselves.
 *
 *   a model call ──dispatched──▶ a worker, which names it in heartbeats until its result is stored
 *                     ├─ no free slot ──▶ the worker publishes it
 *                     └─ refused, or lost ──▶ published as all others
 */
export class Outbox {
  readonly #deps: OutboxDeps;
  /** Effects without an acknowledged publish. */
  readonly #requested = new ObjectMap<Requested>();
  readonly #queue: string[] = [];
  /** Open effects, published or not. */
  readonly #open = new ObjectMap<EffectInPartition & Pick<EffectRow, 'kind'>>();
  /** Partitions with all open effects loaded. */
  readonly #loaded = new Set<number>();
  /** To be marked. */
  readonly #published = new ObjectMap<EffectInPartition>();
  readonly #dispatched: DispatchedEffects;
  /** Effects with an outbox row of a release before. */
  readonly #withRow = new ObjectMap<EffectInPartition>();
  readonly #running = new SlotMap<Promise<void>>();
  readonly #retries = new Set<NodeJS.Timeout>();
  /** Woken whenever fewer effects may be requested. */
  readonly #waiting = new Set<() => void>();
  #marking: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
    const { bus, log, callSilenceMs: silenceMs, cursorOf } = deps;
    this.#dispatched = new DispatchedEffects({
      bus,
      log,
      silenceMs,
      cursorOf,
      onRefused: (effect) => this.#queueDispatched(effect, NEVER_DELIVERED),
      onStored: (effect) => this.#markDone(effect),
      onLost: (effect) => this.#queueDispatched(effect, REDISPATCHED),
    });
  }

  get openEffects(): number {
    return this.#open.size;
  }

  /** Open effects of a kind, published or not. */
  openOf(kind: string): number {
    let count = 0;
    for (const effect of this.#open.values()) if (effect.kind === kind) count += 1;
    return count;
  }

  hasLoaded(partition: number): boolean {
    return this.#loaded.has(partition);
  }

  isOpen(effectId: string): boolean {
    return this.#open.has(effectId);
  }

  /**
   * Publishes again, under the same ids: unpublished effects of acquired partitions, and those lost with a work queue. An unpublished call may be dispatched: it
   * is published once no worker names it, or at once if its dispatch has ended with an earlier process.
   * @param queueCreatedAtMs by the queue's clock
   * @returns the open effects
   */
  async load(store: Pick<EffectStore, 'open'>, partitions: readonly number[], queueCreatedAtMs: number): Promise<EffectRow[]> {
    const stored = await store.open(partitions);
    failPoint('take-over.effects-read');
    for (const { effect, isUnpublished, hasOutboxRow, isClaimed } of stored) {
      this.#open.set(effect.id, { id: effect.id, partition: effect.partition, kind: effect.kind });
      if (hasOutboxRow) this.#withRow.set(effect.id, { id: effect.id, partition: effect.partition });
      const isLost = effect.createdAtMs < queueCreatedAtMs + CLOCK_MARGIN_MS && !isClaimed;
      if (isUnpublished && this.#isDispatchable(effect)) this.#loadDispatched(effect);
      else if (isUnpublished || isLost) this.#request(effect, REPUBLISHED);
    }
    for (const partition of partitions) this.#loaded.add(partition);
    this.#pump();
    return stored.map(({ effect }) => effect);
  }

  /**
   * Publishes all open effects again, under the same ids, to a replaced queue, which dedupes by id. Except claimed tool calls: a worker had begun
   * them, and another would report `outcome_unknown` at once. And except dispatched calls: they were not lost with it.
   * @returns how many
   */
  async publishAgain(store: Pick<EffectStore, 'open'>, partitions: readonly number[]): Promise<number> {
    const stored = await store.open(partitions); // no fail point: reads
    // Except those closed meanwhile or with a publish outstanding.
    const isWaiting = (id: string) => this.#requested.has(id) || this.#dispatched.has(id);
    const lost = stored.filter(({ effect: { id }, isClaimed }) => this.#open.has(id) && !isWaiting(id) && !isClaimed);
    for (const { effect } of lost) this.#request(effect, REPUBLISHED);
    this.#pump();
    return lost.length;
  }

  /** For the partitions that the commit stored. */
  release(plan: CommitPlan, owned: ReadonlySet<number>): void {
    this.#notifyAfter(plan.after, owned);
    for (const effect of plan.effects.values()) {
      if (!owned.has(effect.partition) || effect.state !== 'open') continue;
      this.#open.set(effect.id, { id: effect.id, partition: effect.partition, kind: effect.kind });
      this.#request(effect, null);
    }
    for (const [id, { partition }] of plan.effectStates) {
      if (!owned.has(partition)) continue;
      this.#open.delete(id);
      this.#requested.delete(id);
      this.#dispatched.delete(id);
      if (this.#withRow.has(id)) this.#markDone({ id, partition });
      else this.#published.delete(id);
    }
    for (const [id, partition] of plan.outboxDone) if (owned.has(partition)) for (const known of [this.#published, this.#withRow]) known.delete(id);
    this.#pump();
  }

  /** Adds published effects to a plan, which marks them. Those that it closes need no mark. */
  addDone(plan: CommitPlan, touch: (partition: number) => boolean): void {
    for (const { id, partition } of this.#published.values()) {
      if (!plan.isClosed(id) && touch(partition)) plan.outboxDone.set(id, partition);
    }
  }

  get hasDone(): boolean {
    return this.#published.size > 0;
  }

  /** @param calls a worker executes them */
  onHeartbeat(calls: readonly string[]): void {
    this.#dispatched.onHeartbeat(calls);
  }

  /**
   * Before partitions are released: waits until their calls are dispatched and the refused ones queued, within half a second. The next owner would notice those
   * that were not by their silence. Never rejects.
   */
  async handOver(partitions: readonly number[]): Promise<void> {
    const leaving = new Set(partitions);
    const handedOver = this.#isHandedOver(leaving) ? null : this.#untilHandedOver(leaving).catch(() => {});
    if (handedOver !== null) await within(HAND_OVER_MS, handedOver, () => {}); // no fail point: waits
  }

  forget(partition: number): void {
    this.#loaded.delete(partition);
    this.#dispatched.forget(partition);
    for (const known of [this.#open, this.#published, this.#withRow])
      for (const effect of known.values()) if (effect.partition === partition) known.delete(effect.id);
    for (const { effect } of this.#requested.values()) if (effect.partition === partition) this.#requested.delete(effect.id);
    this.#wake();
  }

  /** Publishes nothing more and waits for publishes in flight. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#marking !== null) clearTimeout(this.#marking);
    for (const retry of this.#retries) clearTimeout(retry);
    await Promise.all([this.#dispatched.stop(), ...this.#running.values()]); // no fail point: waits
  }

  #notifyAfter({ replies, notices, aborts }: AfterCommit, owned: ReadonlySet<number>): void {
    for (const { partition, gateway, commandId, reply, repeat } of replies) {
      const message: ReplyMessage = { v: 1, commandId, answer: reply, repeat };
      if (owned.has(partition)) this.#notify(addresses.replies, gateway, JSON.stringify(message));
    }
    for (const [sessionId, { partition, first, last, events, isDeleted, isChanged }] of notices) {
      if (!owned.has(partition)) continue;
      const size = events.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      const message: NoticeMessage = { v: 1, first, last, events: size > MAX_NOTICE_BYTES ? null : events };
      if (isDeleted) message.isDeleted = isDeleted;
      if (isChanged) message.isChanged = isChanged;
      this.#notify(addresses.notices, sessionId, JSON.stringify(message));
    }
    for (const { partition, callId } of aborts) {
      if (owned.has(partition)) this.#notify(addresses.control, callId, '{"abort":true}');
    }
  }

  /** An id from a sender may be no subject token: it gets no notice, and the commit stands. */
  #notify(address: (typeof addresses)['replies' | 'notices' | 'control'], token: string, body: string): void {
    try {
      this.#deps.bus.notices.publish(subjectOf(address, token), body);
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'a notice could not be sent');
    }
  }

  #request(effect: EffectRow, queued: QueuedDelivery | null): void {
    this.#requested.set(effect.id, { effect, queued, pauseMs: RETRY_FIRST_MS });
    this.#queue.push(effect.id);
  }

  /** Left by another owner, or by an earlier process. */
  #loadDispatched(effect: EffectRow): void {
    if (effect.createdAtMs < this.#deps.bus.work.earliestDispatchAtMs) this.#request(effect, REDISPATCHED);
    else this.#dispatched.follow(effect);
  }

  #queueDispatched(effect: EffectRow, queued: QueuedDelivery): void {
    if (!this.#open.has(effect.id)) return;
    this.#request(effect, queued);
    this.#pump();
  }

  #isDispatchable({ id, kind }: EffectRow): boolean {
    return this.#deps.workOf(kind) === DISPATCHED_KIND && isToken(id);
  }

  #areDispatched(leaving: ReadonlySet<number>): boolean {
    for (const { effect } of this.#requested.values()) if (leaving.has(effect.partition) && this.#isDispatchable(effect)) return false;
    return true;
  }

  #isHandedOver(leaving: ReadonlySet<number>): boolean {
    return this.#areDispatched(leaving) && this.#dispatched.unnamedAmong(leaving) === null;
  }

  async #untilHandedOver(leaving: ReadonlySet<number>): Promise<void> {
    do {
      while (!this.#areDispatched(leaving)) await new Promise<void>((resolve) => this.#waiting.add(resolve)); // no fail point: waits
      const partition = this.#dispatched.unnamedAmong(leaving);
      // Refusals come before the reply.
      if (partition !== null) await this.#deps.bus.commands.lastOf(partition); // no fail point: reads
    } while (!this.#areDispatched(leaving));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** @returns false: it is too long */
  #dispatch(effect: EffectRow, body: string): boolean {
    const { work } = this.#deps.bus;
    const bytes = Buffer.from(body);
    if (bytes.byteLength > Math.min(MAX_DISPATCH_BYTES, work.maxDispatchBytes())) return false;
    work.dispatch(DISPATCHED_KIND, effect.id, bytes);
    // Refusals come later.
    this.#dispatched.follow(effect);
    failPoint('outbox.dispatched');
    return true;
  }

  #pump(): void {
    while (!this.#stopped && this.#running.size < MAX_PUBLISHING) {
      const id = this.#queue.shift();
      if (id === undefined) return;
      const running = this.#publish(id).finally(() => {
        this.#running.remove(slot);
        this.#wake();
        this.#pump();
      });
      const slot = this.#running.add(running);
    }
  }

  async #publish(id: string): Promise<void> {
    const { bus, clock, workOf, isOwner, render, fail, log } = this.#deps;
    const requested = this.#requested.get(id);
    if (requested === undefined) return;
    const { effect } = requested;
    try {
      workMarks.mark('effects');
      const body = await render(effect, requested.queued?.republished ?? false);
      // Superseded while it was rendered.
      if (this.#requested.get(id) !== requested) return;
      failPoint('outbox.rendered');
      const { queued } = requested;
      if (queued === null && this.#isDispatchable(effect)) {
        if (!isOwner()) return this.#retryLater(id, requested);
        if (this.#dispatch(effect, body)) return void this.#requested.delete(id);
      }
      await bus.work.publish(workOf(effect.kind), id, body, queued?.earlierDeliveries ?? 0);
      failPoint('outbox.published');
      this.#requested.delete(id);
      if (this.#open.has(id)) this.#markDone(effect);
    } catch (error) {
      if (this.#requested.get(id) !== requested) return;
      // It may be on the bus: the worker has to check the effect's row first.
      requested.queued = { republished: true, earlierDeliveries: requested.queued?.earlierDeliveries ?? 0 };
      if (error instanceof Unrenderable || clock.nowMs() >= effect.inputs.deadlineAtMs) {
        this.#requested.delete(id);
        fail(effect, error);
        return;
      }
      log.warn({ err: error, effect_id: id, session_id: effect.sessionId }, 'an effect could not be published yet');
      this.#retryLater(id, requested);
    }
  }

  /** Outside the publishing slots, so that failing effects do not block others. */
  #retryLater(id: string, requested: Requested): void {
    if (this.#stopped) return;
    const retry = setTimeout(() => {
      this.#retries.delete(retry);
      if (this.#requested.get(id) !== requested) return;
      this.#queue.push(id);
      this.#pump();
    }, requested.pauseMs);
    this.#retries.add(retry);
    requested.pauseMs = Math.min(requested.pauseMs * 2, RETRY_LONGEST_MS);
  }

  #markDone({ id, partition }: EffectInPartition): void {
    this.#published.set(id, { id, partition });
    if (this.#marking !== null || this.#stopped) return;
    this.#marking = setTimeout(() => {
      this.#marking = null;
      if (this.#published.size > 0) this.#deps.onRowsDone();
    }, MARK_WITHIN_MS);
  }
}
