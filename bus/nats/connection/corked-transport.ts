import { type NatsConnection, NatsConnectionImpl, type NodeConnectionOptions, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { SocketReads } from './socket-reads.ts';
import { corkForTick } from './tick-end.ts';

/**
 * The library's transport with one write per tick and fewer objects per read. The library writes per message: twenty requests that arrive together are twenty
 * system calls here and twenty reads at the broker.
 */
class CorkedTransport extends NodeTransport {
  readonly #reads = new SocketReads();

  override setupHandlers(): void {
    super.setupHandlers();
    // In place of the library's, which feeds its generator.
    this.socket.removeAllListeners('data');
    for (const bytes of this.yields.splice(0)) this.#reads.add(bytes);
    this.socket.on('data', (bytes) => this.#reads.add(bytes));
  }

  override iterate(): AsyncIterableIterator<Uint8Array> {
    return this.#reads;
  }

  /** A failed write is ignored: the connection's end follows. */
  override send(frame: Uint8Array): void {
    const { socket } = this;
    if (this.isClosed || socket === undefined) return;
    corkForTick(socket);
    socket.write(frame);
  }
}

export function connectCorked(options: NodeConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new CorkedTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
