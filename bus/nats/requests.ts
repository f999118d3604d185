import {
  createInbox,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  type PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import { Dictionary } from '#shared/dictionary.ts';

/** The status of a message that the broker sends in place of an answer: nobody listens there. */
const NO_RESPONDERS = 503;

interface Waiting {
  reply: string;
  subject: string;
  timer: NodeJS.Timeout;
  resolve(answer: Msg): void;
  reject(error: Error): void;
}

/**
 * Requests of one connection, whose answers all come to one standing subscription. The library has the same, but makes an error with its
 * stack, two timers' worth of objects and three promises for each request that succeeds: more than all else that a request costs.
 */
export class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #waiting = new Dictionary<Waiting>();
  #asked = 0;

  constructor(connection: NatsConnection, inboxPrefix: string) {
    this.#connection = connection;
    this.#inbox = `${createInbox(inboxPrefix)}.`;
    connection.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error === null) this.#take(message);
      },
    });
  }

  /** @throws `RequestError` when nobody listens there or the broker refuses it, `TimeoutError` when no answer came in time, what the library says of a connection that has ended */
  ask(subject: string, payload: Uint8Array | string, { timeoutMs, headers }: { timeoutMs: number; headers?: MsgHdrs }): Promise<Msg> {
    return new Promise((resolve, reject) => {
      this.#asked += 1;
      const reply = this.#inbox + this.#asked.toString(36);
      this.#connection.publish(subject, payload, headers === undefined ? { reply } : { reply, headers });
      const timer = setTimeout(() => {
        this.#waiting.delete(reply);
        reject(new TimeoutError());
      }, timeoutMs);
      this.#waiting.set(reply, { reply, subject, timer, resolve, reject });
    });
  }

  /** The broker has refused to take something under this subject: it does not say which message it was. */
  refuse(error: PermissionViolationError): void {
    for (const { reply, subject, reject } of this.#waiting.values()) {
      if (error.operation !== 'publish' || error.subject !== subject) continue;
      this.#forget(reply);
      reject(new RequestError(error.message, { cause: error }));
    }
  }

  /** No answer can come any more. */
  end(error: Error): void {
    for (const { reply, reject } of this.#waiting.values()) {
      this.#forget(reply);
      reject(error);
    }
  }

  #take(message: Msg): void {
    // Late, or the second answer: nobody waits for it.
    const waiting = this.#forget(message.subject);
    if (waiting === undefined) return;
    if (message.data.length > 0 || message.headers?.code !== NO_RESPONDERS) waiting.resolve(message);
    else waiting.reject(noResponders(waiting.subject));
  }

  #forget(reply: string): Waiting | undefined {
    const waiting = this.#waiting.get(reply);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(reply);
    return waiting;
  }
}

function noResponders(subject: string): RequestError {
  const cause = new NoRespondersError(subject);
  return new RequestError(cause.message, { cause });
}
