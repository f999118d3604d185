import type { NatsConnection, PublishOptions } from '@nats-io/transport-node';
import type { Log } from '#shared/telemetry/log.ts';

/** Bytes without a PONG. Past it messages are dropped: the broker or the network is stuck. */
const MAX_UNCONFIRMED_BYTES = 32 * 1024 * 1024;
const CONFIRM_EVERY_BYTES = 1024 * 1024;
/** Of notices and frames: brokers slow down with larger messages. */
const MAX_MESSAGE_BYTES = 512 * 1024;

/** Publishes without acks, within a byte budget for a stuck broker. */
export class BoundedPublisher {
  readonly #connection: NatsConnection;
  readonly #isUp: () => boolean;
  readonly #log: Log;
  /** Of a message. */
  readonly #maxBytes: () => number;
  #unconfirmedBytes = 0;
  #sinceBytes = 0;
  #lost = 0;

  constructor(connection: NatsConnection, isUp: () => boolean, log: Log, maxBytes = () => MAX_MESSAGE_BYTES) {
    this.#maxBytes = maxBytes;
    this.#connection = connection;
    this.#isUp = isUp;
    this.#log = log;
  }

  /** @returns false when it is dropped */
  publish(subject: string, bytes: Uint8Array, options?: PublishOptions): boolean {
    if (!this.#isUp()) return false;
    if (bytes.byteLength > this.#maxBytes()) {
      this.#log.error({ subject, size_bytes: bytes.byteLength, limit: this.#maxBytes() }, 'a message is lost: it is too large');
      return false;
    }
    if (this.#unconfirmedBytes > MAX_UNCONFIRMED_BYTES) {
      this.#lose(subject);
      return false;
    }
    this.#send(subject, bytes, options);
    return true;
  }

  #send(subject: string, bytes: Uint8Array, options?: PublishOptions): void {
    this.#connection.publish(subject, bytes, options);
    this.#unconfirmedBytes += bytes.byteLength;
    this.#sinceBytes += bytes.byteLength;
    if (this.#sinceBytes >= CONFIRM_EVERY_BYTES) this.#confirm();
  }

  #confirm(): void {
    const bytes = this.#sinceBytes;
    this.#sinceBytes = 0;
    const confirmed = () => {
      this.#unconfirmedBytes -= bytes;
      this.#lost = 0;
    };
    // Rejects when the connection is lost, with what was in flight.
    this.#connection.flush().then(confirmed, confirmed);
  }

  #lose(subject: string): void {
    this.#lost += 1;
    if (this.#lost === 1) this.#log.warn({ subject, limit: MAX_UNCONFIRMED_BYTES }, 'messages are lost: the broker does not take them');
  }
}
