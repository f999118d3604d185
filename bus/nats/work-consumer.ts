import { AsyncResource } from 'node:async_hooks';
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { Msg, Subscription as NatsSubscription } from '@nats-io/transport-node';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ConsumeOptions, Subscription, WorkItem, WorkKind, WorkQueue } from '../bus.ts';
import { dispatchedItem, dispatchedLeaseMs } from '../dispatched-item.ts';
import { pauseFor } from '../pause.ts';
import { parseDelivery } from './delivery-subject.ts';
import { dispatchSubjectOf, readDispatch } from './dispatcher.ts';
import { earlierDeliveries } from './earlier-deliveries.ts';
import type { NatsLink } from './link.ts';
import { PAUSE_MS, type PauseDetector } from './pause-detector.ts';
import { Pull } from './pull.ts';
import { nanosOf, streams, workConsumers } from './streams.ts';
import { fromWireId, MESSAGE_ID_HEADER } from './wire-id.ts';
import { workItem } from './work-item.ts';

/** Items that all workers of a kind may hold at once; past it the broker gives out no more until some are done. */
const MAX_IN_HAND = 10_000;
/** Requests that the broker keeps for all workers of a kind. Each keeps a few. */
const MAX_WAITING_PULLS = 5_000;
/** Of the slots of a kind that is offered: asked for ahead, so that what waits in the queue comes as soon as it is there. The others are for offers. */
const SHARE_ASKED_AHEAD = 1 / 8;
/** An answer of the broker's stands for whoever asks so soon after the question. */
const SAME_QUESTION_MS = 100;
/** Pause before a consumer is looked for again, doubled each time up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export interface WorkConsumerOptions extends ConsumeOptions {
  link: NatsLink;
  kind: WorkKind;
  clock: Clock;
  handler: (item: WorkItem) => Promise<void>;
  store: WorkQueue['publish'];
  budgetMs: number;
  pauseDetector: PauseDetector;
  log: Log;
}

/**
 * Pulls items of one kind while it has free slots, and takes those that are offered. What was asked for and what is in hand never add up to
 * more than the concurrency; it asks anew once less than half of what it may ask for is asked for, so that a busy worker does not ask for
 * each item, and what is offered takes no more than half of the slots that are freed while items wait in the queue.
 */
export class WorkConsumer implements Subscription {
  readonly #options: WorkConsumerOptions;
  readonly #handler: (item: WorkItem) => Promise<void>;
  readonly #stop = new AbortController();
  /** Items that are being handled, and who waits for there to be none. */
  #inFlight = 0;
  readonly #idle: (() => void)[] = [];
  readonly #ended: Promise<void>;
  /** Null: items of the kind are not offered. */
  readonly #dispatches: NatsSubscription | null;
  #pull: Pull | null = null;
  /** The last time that the broker was asked whether it hears this process. */
  #reached: { askedAt: number; answered: Promise<number> } = { askedAt: Number.NEGATIVE_INFINITY, answered: Promise.resolve(0) };

  constructor(options: WorkConsumerOptions) {
    this.#options = options;
    // Bound: items arrive in the context of a connection, and the handler runs in that of its consumer.
    this.#handler = AsyncResource.bind(options.handler);
    this.#dispatches = this.#listen();
    this.#ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#ended, this.#stopListening()]);
    if (this.#inFlight > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Never rejects. Ends when it is stopped, and then the broker sends nothing more. */
  async #run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#pullUntilBroken();
        pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#options.log.warn({ err: error, kind: this.#options.kind, pause_ms: pauseMs }, 'work can not be consumed yet');
        await pauseFor(pauseMs, this.#stop.signal);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  async #pullUntilBroken(): Promise<void> {
    const { link, kind, log } = this.#options;
    const session = await link.up(this.#stop.signal);
    await this.#declare();
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
        consumer: workConsumers[kind].name,
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
  }

  /** Made by whoever comes first, and brought in line with what this worker wants by whoever comes last. */
  async #declare(): Promise<void> {
    const { link, kind, ackWaitMs, budgetMs } = this.#options;
    const { name, subject } = workConsumers[kind];
    const config = {
      name,
      durable_name: name,
      filter_subject: subject,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      // A holder counts from when he reads an item. He may do so that much later than it was sent, and must have done with it before anybody else has it.
      ack_wait: nanosOf(ackWaitMs + PAUSE_MS),
      max_deliver: -1,
      max_ack_pending: MAX_IN_HAND,
      max_waiting: MAX_WAITING_PULLS,
    };
    await link.retryWhileTransient('declare a consumer of work', budgetMs, () => link.manager.consumers.add(streams.work.name, config), this.#stop.signal);
  }

  #ask(): void {
    const { concurrency } = this.#options;
    const free = concurrency - this.#inFlight;
    const requested = this.#dispatches === null || this.#dispatches.isClosed() ? free : Math.min(free, Math.ceil(concurrency * SHARE_ASKED_AHEAD));
    const asked = this.#pull?.asked ?? 0;
    if (!this.#stop.signal.aborted && asked < requested / 2) this.#pull?.ask(requested - asked);
  }

  /** The broker gives each offer to one of those who listen. It listens anew by itself when it is back. */
  #listen(): NatsSubscription | null {
    const { link, kind, log } = this.#options;
    const subject = dispatchSubjectOf(kind);
    if (subject === null) return null;
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) this.#onDispatch(message);
      else log.error({ err: error, kind }, 'work is not offered here any more');
    };
    return link.main.subscribe(subject, { queue: workConsumers[kind].name, callback });
  }

  /** Resolves when all that the broker has sent before it knew of that has been handed over. Never rejects. */
  async #stopListening(): Promise<void> {
    if (this.#dispatches === null || this.#dispatches.isClosed()) return;
    // Rejected when the connection ends meanwhile: then nothing more comes either.
    if (this.#options.link.isUp) await this.#dispatches.drain().catch(() => {});
    else this.#dispatches.unsubscribe();
  }

  #onDispatch(message: Msg): void {
    const { link, kind, ackWaitMs, concurrency, clock, pauseDetector, store, log } = this.#options;
    const dispatch = readDispatch(message.reply);
    if (dispatch === null) {
      log.error({ kind, reply: message.reply }, 'an offer came in a form that is not known');
      return;
    }
    const { messageId } = dispatch;
    // By the clock of who has sent it, which may differ.
    const publishedAtMs = Math.max(dispatch.publishedAtMs, clock.nowMs() - ackWaitMs);
    // It says when it was sent: what has come since this process stood still is not as old as that.
    const deliveredAt = Math.max(pauseDetector.deliveredSince(), performance.now() - Math.max(0, clock.nowMs() - dispatch.publishedAtMs));
    const body = message.string();
    if (this.#stop.signal.aborted || this.#inFlight + (this.#pull?.asked ?? 0) >= concurrency) {
      // Whoever offered it hears nothing of it, and stores it in the end.
      const lost = (error: unknown) => log.warn({ err: error, kind, message_id: messageId }, 'an item that nobody has time for could not be stored');
      store(kind, messageId, body).catch(lost);
    } else if (performance.now() >= deliveredAt + dispatchedLeaseMs(ackWaitMs)) {
      log.warn({ kind, message_id: messageId }, 'an offer was read so late that it is, or soon will be, somebody else’s');
    } else {
      const item = {
        kind,
        messageId,
        body,
        publishedAtMs,
        ackWaitMs,
        deliveredAt,
        assertOpen: () => link.assertOpen(),
        reach: () => this.#reach(),
        store: () => store(kind, messageId, body, 1),
        stopping: this.#stop.signal,
        log,
      };
      this.#begin(dispatchedItem(item));
    }
  }

  #onMessage(message: Msg): void {
    const { link, kind, ackWaitMs, budgetMs, concurrency, pauseDetector, log } = this.#options;
    const { reply = '' } = message;
    const info = parseDelivery(reply);
    const deliveredAt = pauseDetector.deliveredSince();
    if (info === null) log.error({ kind, reply }, 'a work item came in a form that is not known');
    // It came while this worker stopped, or for a request that was given up: somebody else may have it at once.
    else if (this.#stop.signal.aborted || this.#inFlight >= concurrency) link.main.publish(reply, '-NAK');
    // It waited to be read while this process stood still. Somebody else has it by now, and what we say of it would be taken for his word.
    else if (performance.now() >= deliveredAt + ackWaitMs) {
      log.warn({ kind, delivery: info.delivery }, 'a work item was read after its lease, and is left to its next delivery');
      this.#ask();
    } else {
      const messageId = fromWireId(message.headers?.get(MESSAGE_ID_HEADER) ?? '');
      const delivery = info.delivery + earlierDeliveries(message.headers);
      const { storedAtMs } = info;
      this.#begin(workItem({ link, kind, messageId, body: message.string(), delivery, storedAtMs, reply, deliveredAt, ackWaitMs, budgetMs, log }));
    }
  }

  /** Asked once for all items whose holders want to know at about the same time. */
  #reach(): Promise<number> {
    const now = performance.now();
    if (now - this.#reached.askedAt > SAME_QUESTION_MS) {
      const answered = this.#options.link.main.flush().then(() => now);
      this.#reached = { askedAt: now, answered };
    }
    return this.#reached.answered;
  }

  #begin(item: WorkItem): void {
    this.#inFlight += 1;
    this.#ask();
    void this.#handle(item).then(() => {
      this.#inFlight -= 1;
      this.#ask();
      if (this.#inFlight === 0) for (const wake of this.#idle) wake();
    });
  }

  /** Never rejects. */
  async #handle(item: WorkItem): Promise<void> {
    try {
      await this.#handler(item);
    } catch (error) {
      const { kind, log } = this.#options;
      const { messageId, deliveryCount: delivery } = item;
      log.error({ err: error, kind, message_id: messageId, delivery }, 'a work handler failed: the item is delivered again when its lease lapses');
    }
  }
}
