import type { NatsLink } from '../connection/link.ts';

type Connection = Pick<NatsLink, 'sessionNumber' | 'onPermissionViolation'> & { main: { flush(): Promise<void> } };

/**
 * Whether the broker lets this process publish on a subject: one with the configuration of a release before may not. It reports a violation without the message, and
 * nothing for one that it permits, so the first dispatches of a connection are kept until it has replied to a ping behind them.
 */
export class DispatchPermission {
  readonly #connection: Connection;
  readonly #onDenied: (messageId: string) => void;
  #session: number | null = null;
  #isDenied = false;
  /** Null: the broker has replied. */
  #unconfirmed: string[] | null = null;

  constructor(connection: Connection, subject: string, onDenied: (messageId: string) => void) {
    this.#connection = connection;
    this.#onDenied = onDenied;
    connection.onPermissionViolation((violation) => {
      if (violation.operation === 'publish' && violation.subject === subject) this.#deny();
    });
  }

  /** Until the next connection, whose broker may have another configuration. */
  get isDenied(): boolean {
    return this.#isDenied && this.#session === this.#connection.sessionNumber;
  }

  onPublished(messageId: string): void {
    const session = this.#connection.sessionNumber;
    if (session !== this.#session) this.#begin(session);
    this.#unconfirmed?.push(messageId);
  }

  #begin(session: number | null): void {
    const unconfirmed: string[] = [];
    this.#session = session;
    this.#isDenied = false;
    this.#unconfirmed = unconfirmed;
    const confirmed = () => {
      if (this.#unconfirmed === unconfirmed) this.#unconfirmed = null;
    };
    // Behind the dispatch, which is sent with this tick. The violation is read before the reply, and reported a few microtasks later.
    setImmediate(() => void this.#connection.main.flush().then(() => setImmediate(confirmed), confirmed));
  }

  #deny(): void {
    const denied = this.#unconfirmed ?? [];
    this.#isDenied = true;
    this.#unconfirmed = null;
    for (const messageId of denied) this.#onDenied(messageId);
  }
}
