import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import { createInbox, type Msg } from '@nats-io/transport-node';
import type { Log } from '#shared/telemetry/log.ts';
import type { TokenStream } from '../../bus.ts';
import { RETAINED_WITHIN_MS, treatmentOf } from '../../messages/retention.ts';
import { pauseFor } from '../../pause.ts';
import { BoundedPublisher } from '../connection/bounded-publisher.ts';
import { isStreamMissing } from '../connection/broker-errors.ts';
import { CoreSubscriptions } from '../connection/core-subscriptions.ts';
import { parseDelivery } from '../connection/delivery-subject.ts';
import type { NatsLink } from '../connection/link.ts';
import { API_TIMEOUT_MS } from '../connection/retries.ts';
import { leaveNow } from '../connection/tick-end.ts';
import { both } from '../local/both.ts';
import type { LocalFrames } from '../local/local-frames.ts';
import { nanosOf, streams } from '../streams.ts';
import type { AwayFrames } from './away-frames.ts';
import type { HeldFrames } from './held-frames.ts';
import { LiveBatches } from './live-batches.ts';
import { LiveReaders } from './live-readers.ts';
import { framesIn, isReplayBatch, MAX_BATCHED_BYTES, ReplayBatches } from './replay-batches.ts';

/** Messages per pull. */
const REPLAY_MESSAGES = 1_000;
/** Far above any answer. Past it the rest is dropped, as if it were lost. */
const MAX_REPLAY_BYTES = 64 * 1024 * 1024;
/** The broker deletes the consumer of a dead reader after this. */
const INACTIVE_MS = 30_000;

interface TokenStreamDeps {
  link: NatsLink;
  /** Over `away`. */
  held: HeldFrames;
  /** Over `frameSender`. */
  away: AwayFrames;
  /** Readers in this process, for which the broker does not send back what is published here; null: there are none. */
  local: LocalFrames | null;
  budgetMs: number;
  /** Whether at most one item of work is in flight here, so that batching gains nothing. */
  isAlone(): boolean;
  log: Log;
}

/** Publishes a frame, or drops it. Never throws: held frames have no caller. */
export function frameSender(link: NatsLink, log: Log): (subject: string, frame: Uint8Array) => void {
  const publisher = new BoundedPublisher(link.tokens, () => link.areTokensUp, log);
  return (subject, frame) => {
    try {
      publisher.publish(subject, frame);
    } catch (error) {
      log.warn({ err: error, subject }, 'frames are lost');
    }
  };
}

/**
 * Tokens on their own connection. Retained frames go to a subject that the memory stream captures. Others go live, batched per tick, past it, and are stored
 * as replay batches. Replays use the main connection.
 */
export function natsTokenStream({ link, held, away, local, budgetMs, isAlone, log }: TokenStreamDeps): TokenStream & { flush(): void; close(): Promise<void> } {
  const send = (subject: string, frames: Uint8Array) => held.publish(subject, frames);
  const replayBatches = new ReplayBatches({
    isUp: () => away.isKeeping,
    // A restarted broker has lost the memory stream; the main connection declares it.
    isReady: () => link.isReady && link.areStreamsKnown,
    publish: send,
  });
  const liveBatches = new LiveBatches(send);
  const subscriptions = new CoreSubscriptions(link.tokens, log);
  const listen = (pattern: string, handler: (subject: string, message: Uint8Array) => void) =>
    subscriptions.subscribe(pattern, ({ subject, data }) => handler(subject, data));
  const liveReaders = new LiveReaders({ listen, log });

  const flush = () =>
    leaveNow(() => {
      liveBatches.flush();
      held.release();
      local?.release();
    });

  async function replay(subject: string, leftMs: number): Promise<Uint8Array[]> {
    const config = {
      prefix: 't-',
      filter_subject: subject,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.None,
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanosOf(INACTIVE_MS),
    };
    const names = new Set<string>();
    try {
      const { name, num_pending: retained } = await link.consumers.open(streams.tokens.name, config, leftMs, names);
      names.add(name);
      return retained === 0 ? [] : await readAll(name, Math.min(leftMs, API_TIMEOUT_MS));
    } finally {
      for (const name of names) link.changes.consumers.delete(streams.tokens.name, name).catch(() => {}); // else it expires
    }
  }

  /** @throws when not delivered in time */
  async function readAll(consumer: string, timeoutMs: number): Promise<Uint8Array[]> {
    const frames: Uint8Array[] = [];
    const inbox = createInbox(link.inboxPrefix);
    const ask = () => {
      link.main.publish(`$JS.API.CONSUMER.MSG.NEXT.${streams.tokens.name}.${consumer}`, JSON.stringify({ batch: REPLAY_MESSAGES, no_wait: true }), {
        reply: inbox,
      });
    };
    let [messages, bytes] = [0, 0];
    let end = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('a call was not read back in time')), timeoutMs).unref();
        const callback = (error: Error | null, message: Msg) => {
          if (error !== null) return reject(error);
          const info = parseDelivery(message.reply ?? '');
          // A status instead of a message: the rest has just expired.
          if (info === null) return resolve();
          if (isReplayBatch(message.data)) frames.push(...framesIn(message.data));
          else frames.push(message.data);
          messages += 1;
          bytes += message.data.byteLength;
          if (info.pending === 0 || bytes > MAX_REPLAY_BYTES) resolve();
          else if (messages % REPLAY_MESSAGES === 0) ask();
        };
        const subscription = link.main.subscribe(inbox, { callback });
        end = () => {
          clearTimeout(timer);
          subscription.unsubscribe();
        };
        ask();
      });
      return frames;
    } finally {
      end();
    }
  }

  return {
    publish(subject, frame) {
      const isSmall = frame.byteLength <= MAX_BATCHED_BYTES;
      const { retention, leaves } = treatmentOf(frame);
      // What a client has seen first is retained, and what it has seen last is billed.
      if (away.isKeeping) local?.publish(subject, frame, leaves === 'at once' || held.isHolding);
      if (isSmall && retention === 'soon') liveBatches.add(replayBatches.add(subject, frame), frame);
      else if (isSmall && retention === 'no more') liveBatches.add(replayBatches.drop(subject), frame);
      else {
        // Keeps the order, live and in the stream.
        liveBatches.flush();
        replayBatches.flush(subject);
        send(subject, frame);
      }
      if (leaves === 'at once' || (leaves === 'alone' && isAlone())) flush();
    },
    subscribe(pattern, handler) {
      const retained = listen(pattern, (subject, message) => {
        // Its frames came live before.
        if (!isReplayBatch(message)) handler(subject, message);
      });
      const atBroker = both(liveReaders.read(pattern, handler), retained);
      return local === null ? atBroker : both(atBroker, local.subscribe(pattern, handler));
    },
    async replay(subject, upTo = 'kept') {
      if (upTo === 'now') await pauseFor(RETAINED_WITHIN_MS);
      return link.retries.runWithin('read a call back', budgetMs, async (leftMs) => {
        try {
          return await replay(subject, leftMs);
        } catch (error) {
          if (isStreamMissing(error)) return [];
          throw error;
        }
      });
    },
    flush,
    async close() {
      liveBatches.flush();
      replayBatches.close();
      held.release();
      await away.settled();
      away.close();
      subscriptions.close();
      local?.close();
    },
  };
}
