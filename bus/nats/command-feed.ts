import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { StoredCommand } from '../bus.ts';
import { type DeliveryInfo, parseDelivery } from './delivery-subject.ts';
import type { NatsLink } from './link.ts';
import { Pull } from './pull.ts';
import { nanosOf, streams } from './streams.ts';
import { fromWireId, MESSAGE_ID_HEADER } from './wire-id.ts';

/** What is asked for at once, and so what a reader holds in memory while its handler is busy: at most this much twice. */
const PULL_COMMANDS = 512;
const PULL_BYTES = 2 * 1024 * 1024;
/** A consumer that nobody pulls from is cleared away by the broker after this: what a dead process leaves behind. */
const INACTIVE_MS = 120_000;

/** For the broker to remove a consumer, which it does by itself after some minutes. */
const REMOVE_BUDGET_MS = 5_000;

export interface CommandFeedOptions {
  link: NatsLink;
  subject: string;
  /** The sequence to begin behind; 0: at the log's first command. */
  after: number;
  /** The time that the link is up; the feed ends with it. */
  session: AbortSignal;
  /** Whoever opens it wants it no more. */
  until: AbortSignal;
  budgetMs: number;
  log: Log;
}

/**
 * The commands of one partition behind a sequence, in order and without a gap, until it breaks: when the connection is lost, the
 * consumer vanishes, or a message was lost on its way. It never mends itself, because whoever reads must look at its place first.
 */
export class CommandFeed {
  readonly #options: CommandFeedOptions;
  readonly #consumer: string;
  readonly #pull: Pull;
  #commands: StoredCommand[] = [];
  #bytes = 0;
  #reached: number;
  #received = 0;
  #broken = false;
  #wake: (() => void) | null = null;

  /** @throws what the broker threw */
  static async open(options: CommandFeedOptions): Promise<CommandFeed> {
    const { link, subject, after, session, until, budgetMs } = options;
    const name = `r-${ulid()}`;
    const config = {
      name,
      filter_subject: subject,
      ...(after === 0 ? { deliver_policy: DeliverPolicy.All } : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 }),
      ack_policy: AckPolicy.None,
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanosOf(INACTIVE_MS),
    };
    try {
      await link.retryWhileTransient('begin to read a partition', budgetMs, () => link.manager.consumers.add(streams.commands.name, config), until);
    } catch (error) {
      // Who stops waiting for the broker's word may have a consumer all the same.
      await removeConsumer(link, name, session);
      throw error;
    }
    if (session.aborted) throw new SwitchyardError('service.unreachable', 'the connection was lost while a reader began');
    return new CommandFeed(options, name);
  }

  private constructor(options: CommandFeedOptions, consumer: string) {
    const { link, after, session, log } = options;
    this.#options = options;
    this.#consumer = consumer;
    this.#reached = after;
    this.#pull = new Pull({
      link,
      stream: streams.commands.name,
      consumer,
      log,
      session,
      onMessage: (message) => this.#onMessage(message),
      onExpired: () => this.#ask(),
      onBroken: () => this.#break(),
    });
    this.#ask();
  }

  /** True once nothing more comes. What has come before still stands. */
  get isBroken(): boolean {
    return this.#broken;
  }

  /** All that is at hand, at most `maxCommands`. */
  dequeue(maxCommands: number): StoredCommand[] {
    const dequeued = this.#commands.splice(0, maxCommands);
    for (const { body } of dequeued) this.#bytes -= body.length;
    if (this.#pull.asked === 0) {
      // Its consumer may be gone by now, and the broker would not say so.
      if (this.#pull.sinceAskedMs > INACTIVE_MS / 2) this.#break();
      else this.#ask();
    }
    return dequeued;
  }

  /** Resolves when something came, or nothing more will. */
  untilReceived(): Promise<void> {
    if (this.#commands.length > 0 || this.#broken) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Also wakes whoever waits for an arrival. */
  async close(): Promise<void> {
    this.#break();
    await this.#pull.drain();
    const { link, session } = this.#options;
    await removeConsumer(link, this.#consumer, session);
  }

  #ask(): void {
    if (this.#broken || this.#pull.asked > 0) return;
    if (this.#commands.length > PULL_COMMANDS / 2 || this.#bytes > PULL_BYTES / 2) return;
    this.#pull.ask(PULL_COMMANDS, PULL_BYTES);
  }

  #onMessage(message: Msg): void {
    if (this.#broken) return;
    const info = parseDelivery(message.reply ?? '');
    this.#received += 1;
    // A gap in the consumer's own count means that a message was lost between the broker and here.
    if (info === null || info.consumerSequence !== this.#received || info.streamSequence <= this.#reached) this.#break();
    else this.#queue(info, message);
  }

  #queue({ streamSequence: sequence, storedAtMs }: DeliveryInfo, message: Msg): void {
    this.#reached = sequence;
    const command = { sequence, messageId: fromWireId(message.headers?.get(MESSAGE_ID_HEADER) ?? ''), body: message.string(), storedAtMs };
    this.#commands.push(command);
    this.#bytes += command.body.length;
    if (this.#pull.asked === 0) this.#ask();
    this.#wake?.();
  }

  #break(): void {
    this.#broken = true;
    this.#wake?.();
  }
}

/** Never rejects: when it can't be told, or its connection is lost meanwhile, the broker clears it away by itself. */
async function removeConsumer(link: NatsLink, name: string, session: AbortSignal): Promise<void> {
  const remove = () => link.manager.consumers.delete(streams.commands.name, name);
  if (!session.aborted) await link.retryWhileTransient('remove a consumer', REMOVE_BUDGET_MS, remove, session).catch(() => {});
}
