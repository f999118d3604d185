import { AsyncResource } from 'node:async_hooks';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription } from '../../bus.ts';
import type { NatsLink } from '../connection/link.ts';
import { streams } from '../streams.ts';

/** The only way to notice a stream deleted on a live connection. */
const CHECK_EVERY_MS = 2_000;

/** Detects a recreated work stream by its creation time. */
export class WorkStreamWatch {
  readonly #link: NatsLink;
  readonly #budgetMs: number;
  readonly #log: Log;
  readonly #handlers = new Set<() => void>();
  /** The broker's text, in nanoseconds; null before the first check. */
  #created: string | null = null;
  #checking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #reconnects: Subscription | null = null;

  constructor(link: NatsLink, budgetMs: number, log: Log) {
    this.#link = link;
    this.#budgetMs = budgetMs;
    this.#log = log;
  }

  /** By the broker's clock. @throws `service.unreachable` */
  async createdAtMs(): Promise<number> {
    const created = await this.#readCreated();
    this.#record(created);
    return Date.parse(created);
  }

  onRestart(handler: () => void): Subscription {
    const bound = AsyncResource.bind(handler);
    this.#handlers.add(bound);
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.#check(), CHECK_EVERY_MS).unref();
      this.#reconnects = this.#link.onReconnect(() => this.#check());
      this.#check();
    }
    return {
      stop: async () => {
        this.#handlers.delete(bound);
        if (this.#handlers.size === 0) await this.stop();
      },
    };
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#reconnects?.stop();
    this.#reconnects = null;
  }

  /** Runs every `CHECK_EVERY_MS` and after each reconnect. */
  #check(): void {
    if (!this.#link.isUp) return;
    this.#checking ??= this.#readCreated()
      .then((created) => this.#record(created))
      .catch((error: unknown) => this.#log.debug({ err: error }, 'the work stream could not be checked; the next check follows'))
      .finally(() => {
        this.#checking = null;
      });
  }

  /** Declares a missing stream on the way. */
  async #readCreated(): Promise<string> {
    const link = this.#link;
    const { created } = await link.retries.callApi('describe the stream of work', this.#budgetMs, () => link.manager.streams.info(streams.work.name));
    return created;
  }

  #record(created: string): void {
    const isAnother = this.#created !== null && this.#created !== created;
    this.#created = created;
    if (!isAnother) return;
    this.#log.warn({ created }, 'the work stream was lost and created anew');
    for (const handler of this.#handlers) handler();
  }
}
