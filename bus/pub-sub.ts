import { AsyncResource } from 'node:async_hooks';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Listening } from './bus.ts';
import { type Listener, SubjectIndex } from './subject-index.ts';

/** Past it new messages are dropped. */
const MAX_PENDING = 100_000;

interface Pending<Message> {
  listeners: readonly Listener<Message>[];
  subject: string;
  message: Message;
}

/**
 * In-process publish and subscribe, unstored. Handlers run right after the publisher's synchronous code, in publish order, for the subscribers at the
 * publish.
 */
export class PubSub<Message> {
  readonly #index = new SubjectIndex<Message>();
  readonly #log: Log;
  /** Bound: not in the async context of the first publisher. */
  readonly #drain = AsyncResource.bind(() => this.#handOut());
  #pending: Pending<Message>[] = [];
  #scheduled = false;
  #draining = false;
  #lost = 0;
  #closed = false;

  constructor(log: Log) {
    this.#log = log;
  }

  publish(subject: string, message: Message): void {
    if (this.#closed) return;
    const listeners = this.#index.match(subject);
    if (listeners.length === 0) return;
    if (this.#pending.length < MAX_PENDING) this.#pending.push({ listeners, subject, message });
    else this.#lose(subject);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Next tick, so that two handlers that reply to each other can't starve the rest.
    if (this.#draining) setImmediate(this.#drain);
    else queueMicrotask(this.#drain);
  }

  subscribe(pattern: string, handler: (subject: string, message: Message) => void): Listening {
    if (this.#closed) throw new SwitchyardError('bus.closed', 'the bus is closed');
    const listener: Listener<Message> = { pattern, handler, stopped: false };
    this.#index.add(listener);
    return {
      ready: async () => {},
      stop: async () => {
        if (!listener.stopped) this.#index.remove(listener);
        listener.stopped = true;
      },
    };
  }

  /** Drops what is pending and what comes later. */
  close(): void {
    this.#closed = true;
    this.#pending = [];
  }

  #handOut(): void {
    const pending = this.#pending;
    this.#pending = [];
    this.#scheduled = false;
    this.#draining = true;
    for (const { listeners, subject, message } of pending) {
      for (const listener of listeners) {
        if (listener.stopped || this.#closed) continue;
        try {
          listener.handler(subject, message);
        } catch (error) {
          this.#log.error({ err: error, subject, pattern: listener.pattern }, 'a handler of notices or tokens threw');
        }
      }
    }
    this.#draining = false;
    this.#lost = 0;
  }

  #lose(subject: string): void {
    this.#lost += 1;
    if (this.#lost === 1) this.#log.warn({ subject, limit: MAX_PENDING }, 'messages are lost: too many wait for their handlers');
  }
}
