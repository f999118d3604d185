import { type NatsConnection, NatsConnectionImpl, type NodeConnectionOptions, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { corkForTick } from './tick-end.ts';

/**
 * The library's transport with one write per tick. The library writes per message: twenty requests that arrive together are twenty system calls here and
 * twenty reads at the broker.
 */
class CorkedTransport extends NodeTransport {
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
