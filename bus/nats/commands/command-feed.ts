import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { StoredCommand } from '../../bus.ts';
import { type DeliveryInfo, parseDelivery } from '../connection/delivery-subject.ts';
import type { NatsLink } from '../connection/link.ts';
import { Pull } from '../connection/pull.ts';
import { fromWireId, MESSAGE_ID_HEADER } from '../connection/wire-id.ts';
import { nanosOf, streams } from '../streams.ts';

/** Size of one pull; at most twice this is in memory while the handler is busy. */
const PULL_COMMANDS = 512;
const PULL_BYTES = 2 * 1024 * 1024;
/** After this the broker deletes a consumer without pulls. */
const INACTIVE_MS = 120_000;

const REMOVE_BUDGET_MS = 5_000;
/**
 * In a cluster an idle feed asks this often for the partition's last command. A server that copies what it has missed from the others may not notify its
 * consumers of it (nats-server 2.9), and they would deliver it with the partition's next command.
 */
const CHECK_EVERY_MS = 2_500;

export interface CommandFeedOptions {
  link: NatsLink;
  subject: string;
  /** The sequence to start after; 0: from the log's first command. */
  after: number;
  /** Aborts when the link goes down, and ends the feed. */
  session: AbortSignal;
  /** Aborts when the feed is no longer wanted. */
  until: AbortSignal;
  budgetMs: number;
  log: Log;
}

/**
 * The commands of a partition after a sequence, without a gap, until the connection, the consumer or a message is lost. It never recovers by itself: the
 * reader must check its position first.
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
  readonly #check: NodeJS.Timeout | null;
  /** Found in the log at the last check, and due by the next one. */
  #due = 0;

  /** @throws the broker's errors */
  static async open(options: CommandFeedOptions): Promise<CommandFeed> {
    const { link, subject, after, session, until, budgetMs } = options;
    const config = {
      prefix: 'r-',
      filter_subject: subject,
      ...(after === 0 ? { deliver_policy: DeliverPolicy.All } : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 }),
      ack_policy: AckPolicy.None,
      max_deliver: 1,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanosOf(INACTIVE_MS),
    };
    /** What may have been created. */
    const names = new Set<string>();
    const create = (leftMs: number) => link.consumers.open(streams.commands.name, config, leftMs, names);
    let name: string;
    try {
      ({ name } = await link.retries.runWithin('begin to read a partition', budgetMs, create, until));
    } catch (error) {
      const removed = Promise.all([...names].map((one) => removeConsumer(link, one, session)));
      // A reader that goes on does not wait for a server that may be lost.
      if (until.aborted) await removed;
      throw error;
    }
    for (const one of names) void removeConsumer(link, one, session);
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
    this.#check = link.isCluster ? setInterval(() => void this.#findDue(), CHECK_EVERY_MS).unref() : null;
    this.#ask();
  }

  /** Never rejects. */
  async #findDue(): Promise<void> {
    const { link, subject, log } = this.#options;
    // What is with the handler, or on the way to it, is not due yet.
    if (this.#broken || this.#commands.length > 0 || this.#pull.asked === 0) return;
    if (this.#due > this.#reached) {
      log.warn({ subject, reached: this.#reached, stored: this.#due }, 'a reader was not sent a command that is stored: another consumer is made');
      return this.#break();
    }
    const last = await link.manager.streams.getMessage(streams.commands.name, { last_by_subj: subject }).catch(() => null);
    this.#due = last?.seq ?? 0;
  }

  /** What was received before stays valid. */
  get isBroken(): boolean {
    return this.#broken;
  }

  dequeue(maxCommands: number): StoredCommand[] {
    const dequeued = this.#commands.splice(0, maxCommands);
    for (const { body } of dequeued) this.#bytes -= body.length;
    if (this.#pull.asked === 0) {
      // The consumer may be deleted, which a pull would not report.
      if (this.#pull.sinceAskedMs > INACTIVE_MS / 2) this.#break();
      else this.#ask();
    }
    return dequeued;
  }

  /** Also resolves when the feed breaks. */
  untilReceived(): Promise<void> {
    if (this.#commands.length > 0 || this.#broken) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Also resolves `untilReceived`. */
  async close(): Promise<void> {
    const isLost = this.#broken;
    this.#break();
    await this.#pull.drain();
    const { link, session } = this.#options;
    const removed = removeConsumer(link, this.#consumer, session);
    // At a lost server of a cluster it is not removed in time, and the reader's next one must not wait for that.
    if (!isLost) await removed;
  }

  #ask(): void {
    if (this.#broken || this.#pull.asked > 0) return;
    if (this.#commands.length > PULL_COMMANDS / 2 || this.#bytes > PULL_BYTES / 2) return;
    this.#pull.ask(PULL_COMMANDS, { maxBytes: PULL_BYTES });
  }

  #onMessage(message: Msg): void {
    if (this.#broken) return;
    const info = parseDelivery(message.reply ?? '');
    this.#received += 1;
    // A gap: a message was lost on the way.
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
    if (this.#check !== null) clearInterval(this.#check);
    this.#wake?.();
  }
}

/** Never rejects: the broker deletes it by itself later. */
async function removeConsumer(link: NatsLink, name: string, session: AbortSignal): Promise<void> {
  const remove = () => link.changes.consumers.delete(streams.commands.name, name);
  if (!session.aborted) await link.retries.run('remove a consumer', REMOVE_BUDGET_MS, remove, session).catch(() => {});
}
