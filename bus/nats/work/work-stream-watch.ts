import { AsyncResource } from 'node:async_hooks';
import type { Log } from '#shared/telemetry/log.ts';
import type { Subscription } from '../../bus.ts';
import type { NatsLink } from '../connection/link.ts';
import { streams } from '../streams.ts';

/** The only way to notice a stream deleted on a live connection. */
const LOOK_EVERY_MS = 2_000;

/** Detects a recreated work stream by its creation time. */
export class WorkStreamWatch {
  readonly #link: NatsLink;
  readonly #budgetMs: number;
  readonly #log: Log;
  readonly #handlers = new Set<() => void>();
  /** The broker's text, in nanoseconds; null before the first look. */
  #created: string | null = null;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #reconnects: Subscription | null = null;

  constructor(link: NatsLink, budgetMs: number, log: Log) {
    this.#link = link;
    this.#budgetMs = budgetMs;
    this.#log = log;
  }

  /** By the broker's clock. @throws `service.unreachable` */
  async createdAtMs(): Promise<number> {
    const created = await this.#ask();
    this.#note(created);
    return Date.parse(created);
  }

  onRestart(handler: () => void): Subscription {
    const bound = AsyncResource.bind(handler);
    this.#handlers.add(bound);
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
      this.#reconnects = this.#link.onReconnect(() => this.#look());
      this.#look();
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

  /** A reconnect triggers a look. */
  #look(): void {
    if (!this.#link.isUp) return;
    this.#looking ??= this.#ask()
      .then((created) => this.#note(created))
      .catch((error: unknown) => this.#log.debug({ err: error }, 'the stream of work could not be looked at; the next look follows'))
      .finally(() => {
        this.#looking = null;
      });
  }

  /** Declares a missing stream on the way. */
  async #ask(): Promise<string> {
    const link = this.#link;
    const { created } = await link.retryWhileTransient('describe the stream of work', this.#budgetMs, () => link.manager.streams.info(streams.work.name));
    return created;
  }

  #note(created: string): void {
    const isAnother = this.#created !== null && this.#created !== created;
    this.#created = created;
    if (!isAnother) return;
    this.#log.warn({ created }, 'the stream of work was lost and has begun anew');
    for (const handler of this.#handlers) handler();
  }
}
