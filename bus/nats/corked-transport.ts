import { type NatsConnection, NatsConnectionImpl, type NodeConnectionOptions, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { SocketReads } from './socket-reads.ts';
import { corkForTick } from './tick-end.ts';

/**
 * The library's transport, but what is sent in one turn of the event loop goes to the socket together, and what comes is handed on with less
 * ado. The library writes once for each thing that happens, and on a busy process a write costs more than what led to it: twenty requests
 * that have come in together would be twenty system calls here, twenty reads at the broker and as many wakings of it.
 */
class CorkedTransport extends NodeTransport {
  readonly #reads = new SocketReads();

  override setupHandlers(): void {
    super.setupHandlers();
    // In the place of the library's own, which hands them to the generator that `iterate` is there.
    this.socket.removeAllListeners('data');
    for (const bytes of this.yields.splice(0)) this.#reads.add(bytes);
    this.socket.on('data', (bytes) => this.#reads.add(bytes));
  }

  override iterate(): AsyncIterableIterator<Uint8Array> {
    return this.#reads;
  }

  /** What can't be written is no news: the connection's end follows. */
  override send(frame: Uint8Array): void {
    const { socket } = this;
    if (this.isClosed || socket === undefined) return;
    corkForTick(socket);
    socket.write(frame);
  }
}

/** As the library's own `connect`. */
export function connectCorked(options: NodeConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new CorkedTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
