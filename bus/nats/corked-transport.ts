import { type NatsConnection, NatsConnectionImpl, type NodeConnectionOptions, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { corkForTurn } from './turn-end.ts';

/** What has come of a connection, for its one reader. A generator would make four promises for each read and wake three times; this wakes once. */
class Arrivals implements AsyncIterableIterator<Uint8Array> {
  readonly #unread: Uint8Array[] = [];
  #wake: ((result: IteratorResult<Uint8Array>) => void) | null = null;

  add(bytes: Uint8Array): void {
    const wake = this.#wake;
    this.#wake = null;
    if (wake === null) this.#unread.push(bytes);
    else wake({ value: bytes, done: false });
  }

  /** Never ends: of a connection that is closed there is nothing more to tell. */
  next(): Promise<IteratorResult<Uint8Array>> {
    const value = this.#unread.shift();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/**
 * The library's transport, but what is sent in one turn of the event loop goes to the socket together, and what comes is handed on with less
 * ado. The library writes once for each thing that happens, and on a busy process a write costs more than what led to it: twenty requests
 * that have come in together would be twenty system calls here, twenty reads at the broker and as many wakings of it.
 */
class CorkedTransport extends NodeTransport {
  readonly #arrivals = new Arrivals();

  override setupHandlers(): void {
    super.setupHandlers();
    // In the place of the library's own, which hands them to the generator that `iterate` is there.
    this.socket.removeAllListeners('data');
    for (const bytes of this.yields.splice(0)) this.#arrivals.add(bytes);
    this.socket.on('data', (bytes) => this.#arrivals.add(bytes));
  }

  override iterate(): AsyncIterableIterator<Uint8Array> {
    return this.#arrivals;
  }

  /** What can't be written is no news: the connection's end follows. */
  override send(frame: Uint8Array): void {
    const { socket } = this;
    if (this.isClosed || socket === undefined) return;
    corkForTurn(socket);
    socket.write(frame);
  }
}

/** As the library's own `connect`. */
export function connectCorked(options: NodeConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new CorkedTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
