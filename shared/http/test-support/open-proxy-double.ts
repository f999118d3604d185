import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

/** A proxy that leads every tunnel to a server of this machine, whatever host is asked for. */
export interface ProxyDouble {
  url: string;
  /** The `host:port` of each tunnel, in order. */
  tunnels: string[];
  /** `Proxy-Authorization` of each. */
  credentials: (string | undefined)[];
  close(): Promise<void>;
}

/** @param targetPort null: it accepts connections and never opens a tunnel */
export async function openProxyDouble(targetPort: number | null): Promise<ProxyDouble> {
  const tunnels: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((_request, response) => void response.writeHead(405).end());
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', (request, client, head) => {
    tunnels.push(request.url ?? '');
    credentials.push(request.headers['proxy-authorization']);
    if (targetPort === null) return;
    const target = connect(targetPort, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      target.write(head);
      target.pipe(client).pipe(target);
    });
    sockets.add(target);
    client.on('error', () => target.destroy());
    target.on('error', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    tunnels,
    credentials,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
