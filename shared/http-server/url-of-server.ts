import type { Server } from 'node:net';

/** A server's URL, such as `http://127.0.0.1:8080`; the loopback address if it listens on all. @throws TypeError when it does not listen on a port */
export function urlOfServer(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('a server that listens on a port has its address');
  return `http://${reachable(address.address)}:${address.port}`;
}

function reachable(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return address.includes(':') ? `[${address}]` : address;
}
