import { createInbox, type Msg, type Subscription } from '@nats-io/transport-node';
import type { Log } from '#shared/telemetry/log.ts';
import { nanosOf } from '../streams.ts';
import type { NatsLink } from './link.ts';

/** How long the broker keeps a request; it is all that an idle reader costs. */
const EXPIRES_MS = 120_000;
/** Interval of the broker's idle heartbeats. */
const HEARTBEAT_MS = 15_000;
/** In a cluster, whose other servers go on without the one that a consumer was at. */
const CLUSTER_HEARTBEAT_MS = 1_000;
/** Heartbeats that may be missed before the consumer counts as lost. */
const SILENT_HEARTBEATS = 2.5;

export interface PullOptions {
  link: NatsLink;
  stream: string;
  consumer: string;
  log: Log;
  /** Aborts when the link goes down, and ends the pull. */
  session: AbortSignal;
  onMessage(message: Msg): void;
  /** A request has ended and `asked` is lower; not called per message. */
  onExpired(): void;
  /** The consumer is lost. Called once; afterwards only `onMessage` is, until `drain` has ended. */
  onBroken(reason: string): void;
}

/**
 * Pulls from a consumer and counts what is outstanding. The broker keeps requests until served or expired. A lost consumer is reported by the broker, or
 * detected by its silence.
 */
export class Pull {
  readonly #options: PullOptions;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #watch: NodeJS.Timeout;
  readonly #offRedeclare: () => void;
  readonly #heartbeatMs: number;
  #asked = 0;
  /** Of the requests that `asked` counts: the last token of their reply subject. */
  #generation = 0;
  #lastReceivedAt = performance.now();
  #lastAskedAt = performance.now();
  #broken = false;

  constructor(options: PullOptions) {
    this.#options = options;
    // Per pull: messages for an earlier one must not arrive here.
    this.#inbox = createInbox(options.link.inboxPrefix);
    this.#subscription = options.link.main.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => this.#onEvent(error, message),
    });
    this.#heartbeatMs = options.link.isCluster ? CLUSTER_HEARTBEAT_MS : HEARTBEAT_MS;
    this.#watch = setInterval(() => this.#listen(), this.#heartbeatMs / 2).unref();
    // nats-server 2.9 does not always end the requests of a consumer of a deleted stream.
    this.#offRedeclare = options.link.streams.onRedeclare(() => this.#break('the streams were declared again'));
    options.session.addEventListener('abort', this.#onDown);
    if (options.session.aborted) this.#break('the connection is lost');
  }

  /** Messages outstanding. */
  get asked(): number {
    return this.#asked;
  }

  /** The broker deletes a consumer that is long not pulled from. */
  get sinceAskedMs(): number {
    return performance.now() - this.#lastAskedAt;
  }

  /** @param expiresMs after it the broker ends the request; absent: it keeps it for long, and shows that it is there */
  ask(count: number, { maxBytes, expiresMs }: { maxBytes?: number; expiresMs?: number } = {}): void {
    if (this.#broken || count <= 0) return;
    if (this.#asked === 0) this.#lastReceivedAt = performance.now();
    this.#lastAskedAt = performance.now();
    this.#asked += count;
    // The broker refuses heartbeats of short requests. Undefined fields are omitted.
    const kept = expiresMs === undefined ? { expires: nanosOf(EXPIRES_MS), idle_heartbeat: nanosOf(this.#heartbeatMs) } : { expires: nanosOf(expiresMs) };
    const request = { batch: count, ...kept, max_bytes: maxBytes };
    const { link, stream, consumer } = this.#options;
    link.main.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, JSON.stringify(request), { reply: this.#reply });
  }

  /** The time of all requests is over: nothing is outstanding. What the broker reports of them later is passed over; a message of one still counts. */
  forget(): void {
    this.#asked = 0;
    this.#generation += 1;
  }

  get #reply(): string {
    return `${this.#inbox}.${this.#generation}`;
  }

  /** Resolves when everything that the broker has sent so far is handled. */
  async drain(): Promise<void> {
    this.#end();
    if (this.#subscription.isClosed()) return;
    // Rejects when the connection ends: then nothing more comes.
    if (this.#options.session.aborted) this.#subscription.unsubscribe();
    else await this.#subscription.drain().catch(() => {});
  }

  readonly #onDown = () => this.#break('the connection is lost');

  /** An error thrown here would end the connection's read loop. */
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

  /** A request ended before it was served in full, or the consumer is lost. */
  #onStatus(code: number, { subject, headers }: Msg): void {
    const left = Number(headers?.get('Nats-Pending-Messages') || Number.NaN);
    if ((code !== 408 && code !== 409) || !Number.isInteger(left)) this.#break(`${code} ${headers?.description ?? ''}`);
    else if (subject === this.#reply) {
      this.#asked = Math.max(0, this.#asked - left);
      this.#options.onExpired();
    }
  }

  /** After a block of the event loop, what has arrived meanwhile is read first. */
  #listen(): void {
    if (!this.#isSilent) return;
    setImmediate(() => {
      if (this.#isSilent) this.#break('it is silent');
    });
  }

  get #isSilent(): boolean {
    return this.#asked > 0 && performance.now() - this.#lastReceivedAt > SILENT_HEARTBEATS * this.#heartbeatMs;
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
