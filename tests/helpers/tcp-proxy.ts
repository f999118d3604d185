import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  port: number;
  /** Nothing goes through any more, in either direction, and no side is notified: like a pulled cable. */
  freeze(): void;
  thaw(): void;
  /** Resets open connections; new ones are accepted. */
  cut(): void;
  close(): Promise<void>;
}

/** A TCP proxy to a server of this machine, which a test can block. @param targetPort asked for each connection if it is a function */
export async function tcpProxy(targetPort: number | (() => number)): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const join = (from: Socket, to: Socket) => {
    sockets.add(from);
    if (isFrozen) from.pause();
    from.on('data', (bytes) => {
      if (!to.write(bytes)) from.pause();
    });
    to.on('drain', () => {
      if (!isFrozen) from.resume();
    });
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer((client) => {
    const target = connect({ port: typeof targetPort === 'number' ? targetPort : targetPort(), host: '127.0.0.1' });
    join(client, target);
    join(target, client);
    if (isFrozen) for (const socket of [client, target]) socket.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    cut,
    close: async () => {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
