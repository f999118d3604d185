import { type ConsumerInfo, JetStreamApiCodes, JetStreamApiError, type StreamInfo } from '@nats-io/jetstream';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription, UsageMessage } from '../../bus.ts';
import { pauseFor } from '../../pause.ts';
import { addresses } from '../../subjects.ts';
import { isDenied } from '../connection/broker-errors.ts';
import type { NatsLink } from '../connection/link.ts';
import { streams, USAGE_CONSUMER } from '../streams.ts';
import { storedRecords } from './stored-records.ts';

const EVERY_MS = 2_000;
const BUDGET_MS = 1_000;
/** Messages read at a time, one by one; one alone after a rejection. */
const MAX_MESSAGES = 200;
/** Of messages that are read at a time; the last one may exceed it. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** After so many ack waits a message must have been delivered again. */
const ACK_WAITS = 2;

export interface UndeliveredRecordsOptions {
  link: NatsLink;
  handler: (records: UsageMessage[]) => Promise<void>;
  /** Records. */
  maxBatch: number;
  ackWaitMs: number;
  log: Log;
}

/**
 * Reads the records that stay in the log although the broker delivers them no more, hands them to the handler, and removes them (ADR 142). They are the
 * messages at or below the consumer's ack floor, and those that were stored more than two ack waits ago. Some of them were accepted: nats-server 2.9 stores
 * acks and removals separately, and one that was killed may keep what was acked.
 */
export class UndeliveredRecords implements Subscription {
  readonly #options: UndeliveredRecordsOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  /** Of the stream that the marks belong to. */
  #created = '';
  /** At the look before: what is still there is not about to be removed. */
  #ackFloor = 0;
  /** The last sequence at an earlier moment. */
  #mark = { sequence: 0, atMs: 0 };
  #maxMessages = MAX_MESSAGES;
  /** Logged as a warning once: it lasts until the broker's permissions are changed. */
  #isDenied = false;

  constructor(options: UndeliveredRecordsOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stop;
    for (;;) {
      await pauseFor(EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        await this.#look();
      } catch (error) {
        const isNews = isDenied(error) && !this.#isDenied;
        this.#isDenied ||= isNews;
        this.#options.log[isNews ? 'warn' : 'debug']({ err: error }, 'the usage log could not be read: the next look follows');
      }
    }
  }

  async #look(): Promise<void> {
    const { link, log } = this.#options;
    const found = await this.#describe();
    const last = this.#lastUndelivered(found);
    this.#ackFloor = found.state.messages === 0 ? 0 : await ackFloorOf(link);
    if (found.state.messages === 0 || found.state.first_seq > last) return;
    const { records, nextSequence } = await this.#read(found.state.first_seq, last);
    if (!(await this.#isHandled(records))) return;
    // Not retried, and not of another stream, whose records have the same sequences.
    if ((await this.#describe()).created !== found.created) return;
    await link.changes.streams.purge(streams.usage.name, { seq: nextSequence });
    log.warn({ records: records.length, below_sequence: nextSequence }, 'usage records were in the log and not delivered: they were read from it');
  }

  #describe(): Promise<StreamInfo> {
    const { link } = this.#options;
    return link.retries.callApi('describe the usage log', BUDGET_MS, () => link.manager.streams.info(streams.usage.name), this.#stop.signal);
  }

  /** @returns the last sequence that should be in the log no more */
  #lastUndelivered({ created, state: { first_seq, last_seq } }: StreamInfo): number {
    const now = performance.now();
    if (created !== this.#created) [this.#created, this.#ackFloor, this.#mark] = [created, 0, { sequence: last_seq, atMs: now }];
    if (first_seq > this.#mark.sequence) this.#mark = { sequence: last_seq, atMs: now };
    const isOver = now - this.#mark.atMs >= ACK_WAITS * this.#options.ackWaitMs;
    return Math.max(this.#ackFloor, isOver ? this.#mark.sequence : 0);
  }

  /** The first of them. */
  async #read(first: number, last: number): Promise<{ records: UsageMessage[]; nextSequence: number }> {
    const { link } = this.#options;
    const records: UsageMessage[] = [];
    let [nextSequence, characters] = [first, 0];
    for (let count = 0; count < this.#maxMessages && characters < MAX_CHARACTERS; count += 1) {
      const query = { seq: nextSequence, next_by_subj: addresses.usage.pattern };
      const get = () => link.manager.streams.getMessage(streams.usage.name, query);
      const message = await link.retries.callApi('read a usage record', BUDGET_MS, get, this.#stop.signal);
      if (message === null || message.seq > last) break;
      const body = message.string();
      characters += body.length;
      records.push(...storedRecords(message.header, body));
      nextSequence = message.seq + 1;
    }
    return { records, nextSequence };
  }

  /** Never rejects. @returns whether the handler accepted all of them; false, too, once this has been stopped, and for none */
  async #isHandled(records: readonly UsageMessage[]): Promise<boolean> {
    const { handler, maxBatch, log } = this.#options;
    try {
      for (let at = 0; at < records.length; at += maxBatch) {
        if (this.#stop.signal.aborted) return false;
        await handler(records.slice(at, at + maxBatch));
      }
      this.#maxMessages = MAX_MESSAGES;
      return records.length > 0;
    } catch (error) {
      this.#maxMessages = 1;
      log.warn({ err: error, records: records.length }, 'usage records that were read from the log were rejected: they stay there');
      return false;
    }
  }
}

/** 0: nothing has been consumed yet. */
async function ackFloorOf(link: NatsLink): Promise<number> {
  const describe = async (): Promise<ConsumerInfo | null> => {
    try {
      return await link.manager.consumers.info(streams.usage.name, USAGE_CONSUMER);
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.ConsumerNotFound) return null;
      throw error;
    }
  };
  return (await link.retries.callApi('describe the consumer of usage', BUDGET_MS, describe))?.ack_floor.stream_seq ?? 0;
}
