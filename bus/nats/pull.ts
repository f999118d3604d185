import { createInbox, type Msg, type Subscription } from '@nats-io/transport-node';
import type { Log } from '#shared/telemetry/log.ts';
import type { NatsLink } from './link.ts';
import { nanosOf } from './streams.ts';

/** How long the broker keeps a request that it can't serve. Long, because it is all that an idle reader costs. */
const EXPIRES_MS = 120_000;
/** While it keeps one it says so this often. */
const HEARTBEAT_MS = 15_000;
/** So long without a word, and the consumer is gone without having said so. */
const SILENCE_MS = 2.5 * HEARTBEAT_MS;

export interface PullOptions {
  link: NatsLink;
  stream: string;
  consumer: string;
  log: Log;
  /** The time that the link is up; the pull ends with it. */
  session: AbortSignal;
  onMessage(message: Msg): void;
  /** Fewer are asked for than were: some came, or a request has expired. Not called for each message. */
  onExpired(): void;
  /** The consumer can't be pulled from any more. Called once, and nothing is called afterwards but `onMessage`, until `drain` has ended. */
  onBroken(reason: string): void;
}

/**
 * Asks a consumer of the broker for messages and counts what is still to come. Requests are kept by the broker until they are served
 * or expire, so asking costs nothing while nothing comes. Whatever happens to the consumer, `onBroken` says so: the broker does, or
 * its silence.
 */
export class Pull {
  readonly #options: PullOptions;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #watch: NodeJS.Timeout;
  readonly #offRedeclare: () => void;
  #asked = 0;
  #lastReceivedAt = performance.now();
  #lastAskedAt = performance.now();
  #broken = false;

  constructor(options: PullOptions) {
    this.#options = options;
    // A new one each time: what the broker still has for an older one must not reach us.
    this.#inbox = createInbox(options.link.inboxPrefix);
    this.#subscription = options.link.main.subscribe(this.#inbox, {
      callback: (error, message) => this.#onEvent(error, message),
    });
    this.#watch = setInterval(() => this.#listen(), HEARTBEAT_MS).unref();
    // nats-server 2.9 does not always answer the open requests of a consumer whose stream was deleted.
    this.#offRedeclare = options.link.onRedeclare(() => this.#break('the streams were declared again'));
    options.session.addEventListener('abort', this.#onDown);
    if (options.session.aborted) this.#break('the connection is lost');
  }

  /** How many messages were asked for and have yet to come. */
  get asked(): number {
    return this.#asked;
  }

  /** How long ago messages were asked for last. A consumer that nobody asks for long is cleared away by the broker. */
  get sinceAskedMs(): number {
    return performance.now() - this.#lastAskedAt;
  }

  ask(count: number, maxBytes?: number): void {
    if (this.#broken || count <= 0) return;
    if (this.#asked === 0) this.#lastReceivedAt = performance.now();
    this.#lastAskedAt = performance.now();
    this.#asked += count;
    // A bound of undefined is none: it is not written.
    const request = { batch: count, expires: nanosOf(EXPIRES_MS), idle_heartbeat: nanosOf(HEARTBEAT_MS), max_bytes: maxBytes };
    const { link, stream, consumer } = this.#options;
    link.main.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, JSON.stringify(request), { reply: this.#inbox });
  }

  /** Asks for nothing more, and resolves when all that the broker has sent before it knew of that has been handed over. */
  async drain(): Promise<void> {
    this.#end();
    if (this.#subscription.isClosed()) return;
    // Rejected when the connection ends meanwhile: then nothing more comes either.
    if (this.#options.session.aborted) this.#subscription.unsubscribe();
    else await this.#subscription.drain().catch(() => {});
  }

  readonly #onDown = () => this.#break('the connection is lost');

  /** Whatever is thrown here would end the connection's reading for good. */
  #onEvent(error: Error | null, message: Msg): void {
    try {
      if (error === null) this.#onMessage(message);
      else this.#break(error.message);
    } catch (fault) {
      this.#options.log.error({ err: fault, consumer: this.#options.consumer }, 'a delivery could not be taken');
    }
  }

  #onMessage(message: Msg): void {
    this.#lastReceivedAt = performance.now();
    const code = message.headers?.code ?? 0;
    if (code === 0) {
      this.#asked = Math.max(0, this.#asked - 1);
      this.#options.onMessage(message);
    } else if (!this.#broken && code !== 100) this.#onStatus(code, message);
  }

  /** A request has ended without having been served in full, and says how much of it is left; or there is no consumer any more. */
  #onStatus(code: number, { headers }: Msg): void {
    const left = Number(headers?.get('Nats-Pending-Messages') || Number.NaN);
    if ((code !== 408 && code !== 409) || !Number.isInteger(left)) this.#break(`${code} ${headers?.description ?? ''}`);
    else {
      this.#asked = Math.max(0, this.#asked - left);
      this.#options.onExpired();
    }
  }

  #listen(): void {
    if (this.#asked > 0 && performance.now() - this.#lastReceivedAt > SILENCE_MS) this.#break('it is silent');
  }

  #break(reason: string): void {
    if (this.#broken) return;
    const { stream, consumer, session, log } = this.#options;
    if (!session.aborted) log.warn({ stream, consumer, reason }, 'a consumer at the broker is gone: another one is made');
    this.#end();
    this.#options.onBroken(reason);
  }

  #end(): void {
    this.#broken = true;
    this.#asked = 0;
    clearInterval(this.#watch);
    this.#offRedeclare();
    this.#options.session.removeEventListener('abort', this.#onDown);
  }
}
