import { connect, createServer } from 'node:net';
import { QueryCount } from './count-queries.mjs';

/**
 * A TCP proxy between one client and its PostgreSQL, which counts the client's queries.
 *
 * @param {string} databaseUrl
 * @returns {Promise<{ url: string, queries: () => number, close: () => void }>}
 */
export async function openCountingProxy(databaseUrl) {
  const { hostname: host, port } = new URL(databaseUrl);
  /** @type {QueryCount[]} */
  const counts = [];
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host, port: Number(port), noDelay: true });
    const count = new QueryCount();
    counts.push(count);
    client.on('data', (bytes) => count.push(bytes));
    for (const [one, other] of /** @type {const} */ ([
      [client, upstream],
      [upstream, client],
    ])) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const address = server.address();
  const url = new URL(databaseUrl);
  url.port = String(typeof address === 'object' ? address?.port : 0);
  return {
    url: url.href,
    queries: () => counts.reduce((all, { count }) => all + count, 0),
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
