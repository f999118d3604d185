import { AsyncResource } from 'node:async_hooks';
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription, UsageLog, UsageMessage } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { addresses } from '../../subjects.ts';
import { FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS } from '../../usage-limits.ts';
import type { NatsLink } from '../connection/link.ts';
import { Pull } from '../connection/pull.ts';
import { nanosOf, streams, USAGE_CONSUMER } from '../streams.ts';
import { storedRecords } from './stored-records.ts';
import { UndeliveredRecords } from './undelivered-records.ts';

/** Unaccepted records of all consumers; past it the broker delivers no more. */
const MAX_UNACKNOWLEDGED = 20_000;
const MAX_WAITING_PULLS = 5_000;
/** Of one batch of messages. */
const PULL_BYTES = 4 * 1024 * 1024;
/** How long the broker looks for what else there is, once there is a message. */
const COLLECT_MS = 10;
/** nats-server 2.9 sometimes ends a request at its time without a word. */
const LONGEST_COLLECT_MS = 50;
const ACK_TIMEOUT_MS = 5_000;
/** A pull that breaks sooner has found a consumer whose leader is not elected yet. */
const LASTING_MS = 1_000;

/** A message of the log. */
interface Delivery {
  /** At least one. */
  records: readonly UsageMessage[];
  /** Reply subject for acks of this delivery. */
  reply: string;
}

export interface UsageConsumerOptions {
  link: NatsLink;
  handler: Parameters<UsageLog['consume']>[0];
  maxBatch: number;
  /** As `UsageConsumeOptions`; 0: at once. */
  everyMs: number;
  ackWaitMs: number;
  budgetMs: number;
  log: Log;
}

/**
 * Pulls one message, then all that wait behind it, and acks each batch that the handler accepts. Nothing is pulled while the handler runs, nor in the pause
 * behind it: records collect at the broker, where they wake nothing, and come together. Held here, their texts would grow old, and a full collection costs
 * many times what they do. What the broker delivers in the pause nevertheless is handled at once.
 *
 * What was delivered in a session of the link is acked in that session only: a broker that lost its store has other records under the same sequences. After
 * a lost connection all is therefore delivered again, which handlers must bear anyway. What was delivered before is handled nevertheless: a consumer's leader
 * that is elected anew may not deliver it again (ADR 142).
 */
export class UsageConsumer implements Subscription {
  readonly #options: UsageConsumerOptions;
  readonly #handler: UsageConsumerOptions['handler'];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  readonly #undelivered: UndeliveredRecords;
  /** Delivered, not yet with the handler. */
  #waiting: Delivery[] = [];
  #pull: Pull | null = null;
  #wake: (() => void) | null = null;

  constructor(options: UsageConsumerOptions) {
    this.#options = options;
    // Bound: records arrive in a connection's async context.
    this.#handler = AsyncResource.bind(options.handler);
    const { link, maxBatch, ackWaitMs, log } = options;
    this.#undelivered = new UndeliveredRecords({ link, handler: this.#handler, maxBatch, ackWaitMs, log });
    this.#ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake?.();
    await Promise.all([this.#ended, this.#undelivered.stop()]);
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { link, log } = this.#options;
    let pauseMs = FIRST_BACKOFF_MS;
    while (!this.#stop.signal.aborted) {
      try {
        if ((await this.#consumeUntilBroken()) >= LASTING_MS) pauseMs = FIRST_BACKOFF_MS;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        log.warn({ err: error, pause_ms: pauseMs }, 'usage records can not be consumed yet');
      }
      await pauseFor(pauseMs, this.#stop.signal);
      pauseMs = Math.min(pauseMs * 2, link.isCluster ? link.retries.longestPauseMs() : LONGEST_BACKOFF_MS);
    }
  }

  /** @returns for how long it has pulled, in milliseconds */
  async #consumeUntilBroken(): Promise<number> {
    const { link, log } = this.#options;
    const session = await link.up(this.#stop.signal);
    await this.#declare();
    const beganAt = performance.now();
    const state = { isBroken: false };
    const pull = new Pull({
      link,
      stream: streams.usage.name,
      consumer: USAGE_CONSUMER,
      log,
      session,
      onMessage: (message) => this.#onMessage(message),
      onExpired: () => this.#wake?.(),
      onBroken: () => {
        state.isBroken = true;
        this.#wake?.();
      },
    });
    this.#pull = pull;
    try {
      await this.#handleBatches(state);
    } finally {
      this.#pull = null;
      await pull.drain();
      const left = this.#waiting.splice(0);
      if (!state.isBroken) this.#return(left, 0, state);
      else if (left.length > 0 && !this.#stop.signal.aborted) await this.#handle(left);
    }
    return performance.now() - beganAt;
  }

  /** @param state of the pull that delivers; ends once it is broken */
  async #handleBatches(state: { readonly isBroken: boolean }): Promise<void> {
    let pauseMs = FIRST_BACKOFF_MS;
    let nextAt = Number.NEGATIVE_INFINITY;
    while (!state.isBroken && !this.#stop.signal.aborted) {
      const batch = this.#take();
      if (batch.length === 0) {
        await this.#pause(nextAt, state);
        if (this.#waiting.length > 0) continue;
        await this.#collect(state);
        nextAt = performance.now() + this.#options.everyMs;
        continue;
      }
      if (await this.#handle(batch)) {
        pauseMs = FIRST_BACKOFF_MS;
        if (!state.isBroken) await this.#ack(batch);
      } else {
        // What has arrived meanwhile would fail alike.
        this.#return([...batch, ...this.#waiting.splice(0)], pauseMs, state);
        await pauseFor(pauseMs, this.#stop.signal);
        pauseMs = Math.min(pauseMs * 2, LONGEST_BACKOFF_MS);
      }
    }
  }

  /** Messages with at most as many records as a batch may have, or one message with more. */
  #take(): Delivery[] {
    let [messages, records] = [0, 0];
    for (const delivery of this.#waiting) {
      records += delivery.records.length;
      if (messages > 0 && records > this.#options.maxBatch) break;
      messages += 1;
    }
    return this.#waiting.splice(0, messages);
  }

  /** Ends early with a message: a busy broker may still serve a request that was given up here, and delivers the message to no other consumer. Never rejects. */
  async #pause(untilMs: number, state: { readonly isBroken: boolean }): Promise<void> {
    const isOver = () => state.isBroken || this.#stop.signal.aborted || this.#waiting.length > 0;
    for (let leftMs = untilMs - performance.now(); leftMs > 0 && !isOver(); leftMs = untilMs - performance.now()) await this.#woken(leftMs);
  }

  /** Waits for a message, and for those that are there with it. Never rejects. */
  async #collect(state: { readonly isBroken: boolean }): Promise<void> {
    const pull = this.#pull;
    const isOver = () => state.isBroken || this.#stop.signal.aborted;
    if (pull === null || isOver()) return;
    if (pull.asked === 0) pull.ask(1);
    await this.#woken(null);
    const room = this.#options.maxBatch - this.#waiting.length;
    if (this.#waiting.length === 0 || room <= 0) return;
    pull.ask(room, { maxBytes: PULL_BYTES, expiresMs: COLLECT_MS });
    const untilMs = performance.now() + LONGEST_COLLECT_MS;
    for (let leftMs = LONGEST_COLLECT_MS; leftMs > 0 && pull.asked > 0 && !isOver(); leftMs = untilMs - performance.now()) await this.#woken(leftMs);
    pull.forget();
  }

  /** Until a message is there, or a request or this consumer ends. @param ms null: without a limit */
  async #woken(ms: number | null): Promise<void> {
    let timer: NodeJS.Timeout | null = null;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (ms !== null) timer = setTimeout(resolve, ms).unref();
    });
    this.#wake = null;
    if (timer !== null) clearTimeout(timer);
  }

  /** Never rejects. @returns whether the handler accepted all of it */
  async #handle(batch: readonly Delivery[]): Promise<boolean> {
    const records = batch.flatMap((delivery) => delivery.records);
    const { maxBatch, log } = this.#options;
    try {
      for (let at = 0; at < records.length; at += maxBatch) {
        // Its records may come again, to whichever consumer.
        if (at > 0 && this.#stop.signal.aborted) return false;
        await this.#handler(records.slice(at, at + maxBatch));
      }
      return true;
    } catch (error) {
      log.warn({ err: error, records: records.length }, 'a batch of usage records was rejected: it is delivered again');
      return false;
    }
  }

  /** Acks are handled in order, so the reply to the last one confirms all. Without it they may be delivered again. Never rejects. */
  async #ack(batch: readonly Delivery[]): Promise<void> {
    const { link, log } = this.#options;
    try {
      for (const { reply } of batch.slice(0, -1)) link.main.publish(reply, '+ACK');
      await link.requests.ask(batch.at(-1)?.reply ?? '', '+ACK', { timeoutMs: ACK_TIMEOUT_MS });
    } catch (error) {
      log.debug({ err: error, records: batch.length }, 'the acks of usage records were not confirmed: they may be delivered again');
    }
  }

  /** To the broker, for any consumer. Never throws: unreturned records are delivered again after `ackWaitMs`. */
  #return(batch: readonly Delivery[], delayMs: number, { isBroken }: { isBroken: boolean }): void {
    if (isBroken || !this.#options.link.isUp) return;
    const verb = delayMs > 0 ? `-NAK {"delay": ${nanosOf(Math.ceil(delayMs))}}` : '-NAK';
    for (const { reply } of batch) this.#options.link.main.publish(reply, verb);
  }

  /** Created by the first consumer; the same for all. */
  async #declare(): Promise<void> {
    const { link, budgetMs, ackWaitMs } = this.#options;
    const config = {
      name: USAGE_CONSUMER,
      durable_name: USAGE_CONSUMER,
      filter_subject: addresses.usage.pattern,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanosOf(ackWaitMs),
      max_deliver: -1,
      max_ack_pending: MAX_UNACKNOWLEDGED,
      max_waiting: MAX_WAITING_PULLS,
    };
    const create = (leftMs: number) => link.consumers.declare(streams.usage.name, config, leftMs);
    await link.retries.runWithin('declare the consumer of usage', budgetMs, create, this.#stop.signal);
  }

  #onMessage(message: Msg): void {
    this.#waiting.push({ records: storedRecords(message.headers, message.string()), reply: message.reply ?? '' });
    this.#wake?.();
  }
}
