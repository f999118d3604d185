import { AsyncResource } from 'node:async_hooks';
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { Msg, Subscription as NatsSubscription } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ConsumeOptions, Subscription, WorkItem, WorkKind, WorkQueue } from '../../bus.ts';
import { type DispatchedBody, type DispatchedItem, dispatchedBody, dispatchedItem, dispatchedLeaseMs, textOfBody } from '../../dispatched-item.ts';
import { logFailedHandler } from '../../failed-handler.ts';
import { lostLease } from '../../lost-lease.ts';
import { pauseFor } from '../../pause.ts';
import { workQueues } from '../../work-queues.ts';
import { parseDelivery } from '../connection/delivery-subject.ts';
import type { NatsLink } from '../connection/link.ts';
import { Pull } from '../connection/pull.ts';
import { fromWireId, MESSAGE_ID_HEADER } from '../connection/wire-id.ts';
import { nanosOf, streams } from '../streams.ts';
import { DispatchedLeases } from './dispatched-leases.ts';
import { dispatchSubjectOf, readDispatch } from './dispatcher.ts';
import { earlierDeliveries } from './earlier-deliveries.ts';
import { PAUSE_MS, type PauseDetector } from './pause-detector.ts';
import { StartLimiter } from './start-limiter.ts';
import { WaitingLease } from './waiting-lease.ts';
import { type QueuedItem, workItem } from './work-item.ts';

/** Unacknowledged items of all workers of a kind; past it the broker delivers no more. */
const MAX_UNACKNOWLEDGED = 10_000;
/** Pull requests of all workers of a kind; each has a few. */
const MAX_WAITING_PULLS = 5_000;
/** Share of a dispatched kind's slots that are pulled for queued items. The others are for dispatches. */
const PREFETCH_SHARE = 1 / 8;
/** Items that wait here for longer belong on the queue: another worker may be free, and its depth tells gateways to refuse. */
const LONGEST_WAIT_MS = 1_000;
/** Back-off, doubled up to the longest. */
const FIRST_PAUSE_MS = 50;
/** A pull that breaks sooner has found a consumer whose leader is not elected yet. */
const LASTING_MS = 1_000;

export interface WorkConsumerOptions extends ConsumeOptions {
  link: NatsLink;
  kind: WorkKind;
  clock: Clock;
  handler: (item: WorkItem) => Promise<void>;
  store: WorkQueue['publish'];
  /** A dispatch is stored. @param publisher null: this process */
  onStored(publisher: string | null, messageId: string): void;
  budgetMs: number;
  pauseDetector: PauseDetector;
  log: Log;
}

interface Dispatch {
  messageId: string;
  /** Null: this process. */
  publisher: string | null;
  body: DispatchedBody;
  publishedAtMs: number;
  /** The earliest possible delivery, by `performance.now()`. */
  deliveredAt: number;
}

/**
 * Pulls queued items of one kind while it has free slots, and accepts dispatched ones. Pulled and in flight never exceed the concurrency. It pulls again
 * below half of its allowance: so a busy worker does not pull per item, and dispatches take at most half of the freed slots while items are queued. Items
 * have their slots while they wait to begin.
 */
export class WorkConsumer implements Subscription {
  readonly #options: WorkConsumerOptions;
  readonly #handler: (item: WorkItem) => Promise<void>;
  readonly #stop = new AbortController();
  /** Items being handled; `#idle` resolves at 0. */
  #inFlight = 0;
  readonly #idle: (() => void)[] = [];
  /** Queued items being handled, by the sequence of the stream: the last delivery of each. */
  readonly #queued = new Map<number, QueuedItem>();
  readonly #ended: Promise<void>;
  /** Null: the kind is not dispatched. */
  readonly #dispatches: NatsSubscription | null;
  #pull: Pull | null = null;
  #wasDeclared = false;
  #declaring: Promise<void> | null = null;
  readonly #leases: DispatchedLeases;
  readonly #starts = new StartLimiter({ onEmpty: () => this.#ask() });

  constructor(options: WorkConsumerOptions) {
    this.#options = options;
    this.#leases = new DispatchedLeases(options.link);
    // Bound: items arrive in a connection's async context.
    this.#handler = AsyncResource.bind(options.handler);
    this.#dispatches = this.#listen();
    this.#ended = this.#run();
  }

  get kind(): WorkKind {
    return this.#options.kind;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Requested items have slots too. None is free while an item has waited to begin for too long. */
  get hasFreeSlot(): boolean {
    return this.#starts.waitedMs() < LONGEST_WAIT_MS && this.#inFlight + (this.#pull?.asked ?? 0) < this.#options.concurrency;
  }

  /** Of a dispatch of this process: handled behind its synchronous code. Without a free slot it is stored, as any other. */
  accept(messageId: string, body: DispatchedBody): void {
    const { clock } = this.#options;
    const publishedAtMs = clock.nowMs();
    queueMicrotask(() => {
      this.#acceptDispatch({ messageId, publisher: null, body, publishedAtMs, deliveredAt: performance.now() });
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#ended, this.#stopListening()]);
    if (this.#inFlight > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#leases.stop();
  }

  /** Never rejects. Once it resolves, the broker sends nothing more. */
  async #run(): Promise<void> {
    const { link, kind, log } = this.#options;
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#stop.signal.aborted) {
      try {
        if ((await this.#pullUntilBroken()) >= LASTING_MS) pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        log.warn({ err: error, kind, pause_ms: pauseMs }, 'work can not be consumed yet');
      }
      await pauseFor(pauseMs, this.#stop.signal);
      pauseMs = Math.min(pauseMs * 2, link.retries.longestPauseMs());
    }
  }

  /** @returns for how long it has pulled, in milliseconds */
  async #pullUntilBroken(): Promise<number> {
    const { link, kind, log } = this.#options;
    const session = await link.up(this.#stop.signal);
    if (link.isCluster && this.#wasDeclared) this.#declareMeanwhile();
    else await this.#declare();
    const beganAt = performance.now();
    const { signal: stopped } = this.#stop;
    await new Promise<void>((resolve) => {
      if (session.aborted || stopped.aborted) return resolve();
      const end = () => {
        stopped.removeEventListener('abort', end);
        resolve();
      };
      stopped.addEventListener('abort', end);
      this.#pull = new Pull({
        link,
        stream: streams.work.name,
        consumer: workQueues[kind].consumer,
        log,
        session,
        onMessage: (message) => this.#onMessage(message),
        onExpired: () => this.#ask(),
        onBroken: end,
      });
      this.#ask();
    });
    const pull = this.#pull;
    this.#pull = null;
    await pull?.drain();
    return performance.now() - beganAt;
  }

  /**
   * A consumer of a cluster outlasts the loss of a server, and delivers as soon as it has a leader: the election of the leader that declares it is not waited
   * for. Where it is lost too, pulls find no responders until it is declared.
   */
  #declareMeanwhile(): void {
    const { kind, log } = this.#options;
    this.#declaring ??= this.#declare()
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) log.warn({ err: error, kind }, 'a consumer of work could not be declared yet');
      })
      .finally(() => {
        this.#declaring = null;
      });
  }

  /** Created by the first worker, updated by the last. */
  async #declare(): Promise<void> {
    const { link, kind, ackWaitMs, budgetMs } = this.#options;
    const { consumer: name, pattern: subject } = workQueues[kind];
    const config = {
      name,
      durable_name: name,
      filter_subject: subject,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      // A worker counts its lease from reading an item, up to PAUSE_MS after it was sent; the lease must end before a redelivery.
      ack_wait: nanosOf(ackWaitMs + PAUSE_MS),
      max_deliver: -1,
      max_ack_pending: MAX_UNACKNOWLEDGED,
      max_waiting: MAX_WAITING_PULLS,
    };
    const create = (leftMs: number) => link.consumers.declare(streams.work.name, config, leftMs);
    await link.retries.runWithin('declare a consumer of work', budgetMs, create, this.#stop.signal);
    this.#wasDeclared = true;
  }

  #ask(): void {
    const { concurrency } = this.#options;
    const free = concurrency - this.#inFlight;
    const requested = this.#dispatches === null || this.#dispatches.isClosed() ? free : Math.min(free, Math.ceil(concurrency * PREFETCH_SHARE));
    const asked = this.#pull?.asked ?? 0;
    if (!this.#stop.signal.aborted && this.#starts.waiting === 0 && asked < requested / 2) this.#pull?.ask(requested - asked);
  }

  /** In a queue group: one member gets each dispatch. Renewed after a reconnect. */
  #listen(): NatsSubscription | null {
    const { link, kind, log } = this.#options;
    const subject = dispatchSubjectOf(kind);
    if (subject === null) return null;
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) this.#onDispatch(message);
      else log.error({ err: error, kind }, 'this process gets no more dispatched items');
    };
    return link.main.subscribe(subject, { queue: workQueues[kind].consumer, callback });
  }

  /** Resolves when everything that the broker has sent so far is handled. Never rejects. */
  async #stopListening(): Promise<void> {
    if (this.#dispatches === null || this.#dispatches.isClosed()) return;
    // Rejects when the connection ends: then nothing more comes.
    if (this.#options.link.isUp) await this.#dispatches.drain().catch(() => {});
    else this.#dispatches.unsubscribe();
  }

  #onDispatch(message: Msg): void {
    const { kind, ackWaitMs, clock, pauseDetector, log } = this.#options;
    const dispatch = readDispatch(message.reply);
    if (dispatch === null) {
      log.error({ kind, reply: message.reply }, 'a dispatched item has a reply subject of an unknown form');
      return;
    }
    const { messageId } = dispatch;
    // The sender's clock may differ.
    const publishedAtMs = Math.max(dispatch.publishedAtMs, clock.nowMs() - ackWaitMs);
    // It can't have been delivered before it was sent, even after a pause.
    const deliveredAt = Math.max(pauseDetector.deliveredSince(), performance.now() - Math.max(0, clock.nowMs() - dispatch.publishedAtMs));
    this.#acceptDispatch({ messageId, publisher: dispatch.publisher, body: dispatchedBody(message.data), publishedAtMs, deliveredAt });
  }

  #acceptDispatch(dispatch: Dispatch): void {
    if (!this.isStopping && this.hasFreeSlot) this.#beginDispatched(dispatch);
    // Stored so late, it could be a second item: the queue may have forgotten the first.
    else if (performance.now() - dispatch.deliveredAt >= dispatchedLeaseMs(this.#options.ackWaitMs)) this.#logLate(dispatch);
    else void this.#storeDispatched(dispatch);
  }

  #logLate({ messageId }: Dispatch): void {
    const { kind, log } = this.#options;
    log.warn({ kind, message_id: messageId }, 'a dispatched item was read after its lease, and is left to its publisher');
  }

  #beginDispatched(dispatch: Dispatch): void {
    this.#begin(async () => {
      // Made here: heartbeats name it from now on.
      const item = this.#dispatchedItem(dispatch);
      const leaseMs = item.leaseEndsAt() - performance.now();
      if (leaseMs <= 0) return this.#logLate(dispatch);
      // With less than half of its lease, that would end before it could be extended.
      if (this.isStopping || leaseMs <= dispatchedLeaseMs(this.#options.ackWaitMs) / 2) return this.#storeDispatched(dispatch);
      const drop = this.#leases.add(item);
      await this.#handle(item).then(drop);
    });
  }

  /** Never rejects. If the store fails, the publisher publishes it later, for want of progress. */
  async #storeDispatched({ messageId, publisher, body }: Dispatch): Promise<void> {
    const { kind, log } = this.#options;
    const lost = (error: unknown) => log.warn({ err: error, kind, message_id: messageId }, 'a dispatched item that found no free slot could not be stored');
    await this.#storeOnBehalf(publisher, messageId, body, 0).catch(lost);
  }

  async #storeOnBehalf(publisher: string | null, messageId: string, body: DispatchedBody, earlierDeliveries: number): Promise<void> {
    const { kind, store, onStored } = this.#options;
    await store(kind, messageId, textOfBody(body), earlierDeliveries);
    onStored(publisher, messageId);
  }

  /** Written out, without a spread: see ADR 126. */
  #dispatchedItem({ messageId, publisher, body, publishedAtMs, deliveredAt }: Dispatch): DispatchedItem {
    const { link, kind, ackWaitMs, log } = this.#options;
    return dispatchedItem({
      kind,
      messageId,
      body,
      publishedAtMs,
      ackWaitMs,
      deliveredAt,
      assertOpen: () => link.retries.assertOpen(),
      confirmConnected: () => this.#leases.confirm(),
      store: () => this.#storeOnBehalf(publisher, messageId, body, 1),
      stopping: this.#stop.signal,
      log,
    });
  }

  #onMessage(message: Msg): void {
    const { link, kind, ackWaitMs, budgetMs, concurrency, pauseDetector, log } = this.#options;
    const { reply = '' } = message;
    const info = parseDelivery(reply);
    if (info === null) {
      log.error({ kind, reply }, 'a work item has a reply subject of an unknown form');
      return;
    }
    const deliveredAt = pauseDetector.deliveredSince();
    const { streamSequence, storedAtMs } = info;
    const [messageId, delivery] = [messageIdOf(message), deliveryOf(message, info.delivery)];
    // Before all else: a nak would give it to another worker.
    if (this.#queued.get(streamSequence)?.absorb({ messageId, storedAtMs, reply })) {
      log.warn({ kind, message_id: messageId, delivery }, 'a work item was delivered again while this process has its lease: it is not begun again');
      this.#ask();
    }
    // It came while stopping, or for an expired request: another worker may have it at once.
    else if (this.#stop.signal.aborted || this.#inFlight >= concurrency) link.main.publish(reply, '-NAK');
    else {
      const item = workItem({ link, kind, messageId, body: message.string(), delivery, storedAtMs, reply, deliveredAt, ackWaitMs, budgetMs, log });
      this.#queued.set(streamSequence, item);
      const waiting = new WaitingLease(item, { deliveredAt, ackWaitMs });
      this.#begin(async () => {
        waiting.stop();
        await (this.isStopping ? this.#giveBack(item) : this.#beginQueued(item, waiting.ageMs));
        if (this.#queued.get(streamSequence) === item) this.#queued.delete(streamSequence);
      });
    }
  }

  /** Never rejects. @param ageMs of its lease */
  async #beginQueued(item: QueuedItem, ageMs: number): Promise<void> {
    const { kind, ackWaitMs, log } = this.#options;
    // After a pause, or a wait: less of the lease is left than its handler counts on. A lease that can't be extended is noticed by the handler.
    const extended = ageMs > PAUSE_MS ? item.working().catch(() => {}) : null;
    // Not begun before that: its lease would end in the middle of it, at a worker that is late.
    if (ageMs > ackWaitMs / 2) await extended;
    if (item.hasLease()) await this.#handle(item);
    // Another worker has it by now, and an ack from here would count for that delivery.
    else log.warn(lostLease(item, kind), 'a work item was read after its lease, and is left to its next delivery');
  }

  /** Of an item that has not begun: another worker may have it at once. Never rejects. */
  async #giveBack(item: QueuedItem): Promise<void> {
    const { kind, log } = this.#options;
    const left = (error: unknown) =>
      log.warn({ err: error, kind, message_id: item.messageId }, 'a work item could not be returned, and is left to its next delivery');
    await item.nak(0).catch(left);
  }

  /** Has a slot from now on. @param begin must not reject */
  #begin(begin: () => Promise<void>): void {
    this.#inFlight += 1;
    this.#ask();
    const end = () => {
      this.#inFlight -= 1;
      this.#ask();
      if (this.#inFlight === 0) for (const wake of this.#idle) wake();
    };
    this.#starts.run(() => void begin().then(end));
  }

  /** Never rejects. */
  async #handle(item: WorkItem): Promise<void> {
    try {
      await this.#handler(item);
    } catch (error) {
      const { kind, log } = this.#options;
      logFailedHandler(log, kind, item, error);
    }
  }
}

function messageIdOf(message: Msg): string {
  return fromWireId(message.headers?.get(MESSAGE_ID_HEADER) ?? '');
}

/** @param delivered deliveries of the stored message */
function deliveryOf(message: Msg, delivered: number): number {
  return delivered + earlierDeliveries(message.headers);
}
