import { type NatsConnection, NatsConnectionImpl, type NodeConnectionOptions, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { isRefusal } from './broker-errors.ts';
import { corkForTick } from './tick-end.ts';

export interface CorkedOptions extends NodeConnectionOptions {
  /** Called for each server that refuses the credentials. The library then dials the others, and reports the error of the last one. */
  onRefusal?: (refusal: Error) => void;
}

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

  /** Called with the reason of a failed attempt. */
  override close(error?: Error): Promise<void> {
    if (error !== undefined && isRefusal(error)) (this.options as CorkedOptions).onRefusal?.(error);
    return super.close(error);
  }
}

export function connectCorked(options: CorkedOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new CorkedTransport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
