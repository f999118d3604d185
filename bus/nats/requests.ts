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
import { SlotMap } from '#shared/slot-map.ts';

/** The status of a message that the broker sends in place of an answer: nobody listens there. */
const NO_RESPONDERS = 503;

interface Waiting {
  slot: number;
  reply: string;
  subject: string;
  timer: NodeJS.Timeout;
  resolve(reply: Msg): void;
  reject(error: Error): void;
}

/**
 * Requests of one connection, whose answers all come to one standing subscription. The library has the same, but makes an error with its
 * stack, two timers' worth of objects and three promises for each request that succeeds: more than all else that a request costs.
 */
export class Requests {
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #waiting = new SlotMap<Waiting>();
  #asked = 0;

  constructor(connection: NatsConnection, inboxPrefix: string) {
    this.#connection = connection;
    this.#inbox = `${createInbox(inboxPrefix)}.`;
    connection.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error === null) this.#onMessage(message);
      },
    });
  }

  /** @throws `RequestError` when nobody listens there or the broker refuses it, `TimeoutError` when no answer came in time, what the library says of a connection that has ended */
  ask(subject: string, payload: Uint8Array | string, { timeoutMs, headers }: { timeoutMs: number; headers?: MsgHdrs }): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { slot: 0, reply: '', subject, timer: setTimeout(() => this.#giveUp(waiting), timeoutMs), resolve, reject };
      // Where it waits, and a number of its own: its place is soon another's.
      this.#asked += 1;
      waiting.slot = this.#waiting.add(waiting);
      waiting.reply = `${this.#inbox}${waiting.slot}-${this.#asked}`;
      try {
        this.#connection.publish(subject, payload, headers === undefined ? { reply: waiting.reply } : { reply: waiting.reply, headers });
      } catch (error) {
        this.#remove(waiting);
        reject(error);
      }
    });
  }

  /** The broker has refused to take something under this subject: it does not say which message it was. */
  refuse(error: PermissionViolationError): void {
    for (const waiting of this.#waiting.values()) {
      if (error.operation !== 'publish' || error.subject !== waiting.subject) continue;
      this.#remove(waiting);
      waiting.reject(new RequestError(error.message, { cause: error }));
    }
  }

  /** No answer can come any more. */
  end(error: Error): void {
    for (const waiting of this.#waiting.values()) {
      this.#remove(waiting);
      waiting.reject(error);
    }
  }

  #onMessage(message: Msg): void {
    const waiting = this.#waiting.get(Number.parseInt(message.subject.slice(this.#inbox.length), 10));
    // Late, or the second answer: nobody waits for it.
    if (waiting?.reply !== message.subject) return;
    this.#remove(waiting);
    if (message.data.length > 0 || message.headers?.code !== NO_RESPONDERS) waiting.resolve(message);
    else waiting.reject(noResponders(waiting.subject));
  }

  #giveUp(waiting: Waiting): void {
    this.#remove(waiting);
    waiting.reject(new TimeoutError());
  }

  #remove({ slot, timer }: Waiting): void {
    clearTimeout(timer);
    this.#waiting.remove(slot);
  }
}

function noResponders(subject: string): RequestError {
  const cause = new NoRespondersError(subject);
  return new RequestError(cause.message, { cause });
}
