import { connect } from 'node:net';
import { MessageReader } from './message-reader.mjs';

/** @typedef {{ host: string, port: number }} Address */

/**
 * @typedef {object} Exchange handlers of one request; `onEnd` exactly once and last, with the reason when the response is not complete
 * @property {(status: number) => void} onStatus
 * @property {(bytes: Buffer) => void} onBody
 * @property {(error: Error | null) => void} onEnd
 */

/** Loopback: a peer that has not answered by then does not run. */
const CONNECT_TIMEOUT_MS = 10_000;

/** A keep-alive connection of a client, with one request at a time. */
export class Connection {
  /** @type {import('node:net').Socket} */
  #socket;
  /** @type {Exchange | null} */
  #exchange = null;
  #isLast = false;

  /** @param {import('node:net').Socket} socket connected */
  constructor(socket) {
    this.#socket = socket;
    const reader = new MessageReader({
      onHead: ({ status, isLast }) => {
        this.#isLast = isLast;
        this.#exchange?.onStatus(status);
      },
      onBody: (bytes) => this.#exchange?.onBody(bytes),
      onEnd: () => this.#finish(null),
    });
    socket.setNoDelay(true);
    socket.on('data', (bytes) => {
      try {
        reader.push(bytes);
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    });
    /** @type {Error | null} */
    let reason = null;
    socket.on('error', (error) => {
      reason = error;
    });
    socket.on('close', () => this.#finish(reason ?? new Error('the connection was closed before the answer was whole')));
  }

  /** @param {Address} address @returns {Promise<Connection>} */
  static open(address) {
    return new Promise((resolve, reject) => {
      const socket = connect(address);
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('connecting took too long')));
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.setTimeout(0);
        socket.off('error', reject);
        resolve(new Connection(socket));
      });
    });
  }

  /** Whether it accepts a further request. */
  get isOpen() {
    return !this.#socket.destroyed && this.#socket.writable && !this.#isLast;
  }

  /** @param {Buffer} request its whole bytes @param {Exchange} exchange */
  send(request, exchange) {
    this.#exchange = exchange;
    if (this.isOpen) this.#socket.write(request);
    else this.#finish(new Error('the connection was closed'));
  }

  /** Closes at once, also in the middle of a response. @param {string} [reason] of the error that `onEnd` gets */
  leave(reason = 'the client left') {
    this.#socket.destroy(new Error(reason));
  }

  /** @param {Error | null} error */
  #finish(error) {
    const exchange = this.#exchange;
    this.#exchange = null; // first: the handler may send the next request
    exchange?.onEnd(error);
  }
}
