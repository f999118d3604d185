import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Listening } from '../../bus.ts';

/** Core NATS subscriptions, renewed after a reconnect. No queue: handlers run as a message is read. */
export class CoreSubscriptions {
  readonly #connection: NatsConnection;
  readonly #log: Log;
  #closed = false;

  constructor(connection: NatsConnection, log: Log) {
    this.#connection = connection;
    this.#log = log;
  }

  subscribe(pattern: string, handler: (message: Msg) => void): Listening {
    if (this.#closed) throw new SwitchyardError('bus.closed', 'the bus is closed');
    let stopped = false;
    // An error thrown here would end the connection's read loop.
    const callback = (error: Error | null, message: Msg) => {
      if (stopped || this.#closed) return;
      try {
        if (error === null) handler(message);
        else this.#log.error({ err: error, pattern }, 'a subscription has ended');
      } catch (fault) {
        this.#log.error({ err: fault, subject: message.subject, pattern }, 'a handler of notices or tokens threw');
      }
    };
    const subscription = this.#connection.subscribe(pattern, { callback });
    return {
      // The broker works in order: its PONG confirms the subscription.
      ready: () => this.#connection.flush().catch(() => {}),
      stop: async () => {
        if (!stopped && !this.#connection.isClosed()) subscription.unsubscribe();
        stopped = true;
      },
    };
  }

  close(): void {
    this.#closed = true;
  }
}
