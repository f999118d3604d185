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

/** The broker's status for no responders. */
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
 * Request and reply over one subscription. The library's own makes an error with its stack, two timers' worth of objects and three promises per request: more
 * than all else a request costs.
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

  /** @throws `RequestError` for no responders or a refusal, `TimeoutError`, and the library's errors */
  ask(subject: string, payload: Uint8Array | string, { timeoutMs, headers }: { timeoutMs: number; headers?: MsgHdrs }): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { slot: 0, reply: '', subject, timer: setTimeout(() => this.#onTimeout(waiting), timeoutMs), resolve, reject };
      // Slots are reused, so the reply subject has a running number too.
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

  /** The broker names only the subject: all requests on it reject. */
  refuse(error: PermissionViolationError): void {
    for (const waiting of this.#waiting.values()) {
      if (error.operation !== 'publish' || error.subject !== waiting.subject) continue;
      this.#remove(waiting);
      waiting.reject(new RequestError(error.message, { cause: error }));
    }
  }

  /** Rejects all requests. */
  end(error: Error): void {
    for (const waiting of this.#waiting.values()) {
      this.#remove(waiting);
      waiting.reject(error);
    }
  }

  #onMessage(message: Msg): void {
    const waiting = this.#waiting.get(Number.parseInt(message.subject.slice(this.#inbox.length), 10));
    // Late, or a second reply.
    if (waiting?.reply !== message.subject) return;
    this.#remove(waiting);
    if (message.data.length > 0 || message.headers?.code !== NO_RESPONDERS) waiting.resolve(message);
    else waiting.reject(noResponders(waiting.subject));
  }

  /** A process that was paused reads its sockets once more: timers come first in a tick of the event loop, and the reply may have arrived meanwhile. */
  #onTimeout(waiting: Waiting): void {
    setImmediate(() => this.#giveUp(waiting));
  }

  #giveUp(waiting: Waiting): void {
    if (this.#waiting.get(waiting.slot) !== waiting) return;
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
