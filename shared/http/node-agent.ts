import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { Pool } from 'undici';
import type { ConnectionLimits } from './connections.ts';

type Connected = (error: Error | null, stream: Duplex) => void;

/** What a library of `node:http` says of a connection that it wants. */
interface Target {
  host?: string | null | undefined;
  port?: string | number | null | undefined;
  servername?: string | undefined;
}

/**
 * Connections of one server for libraries that use `node:http`, which reads no proxy variables itself.
 * @param proxy null: direct connections
 */
export function openNodeAgent({ protocol }: URL, { connectTimeoutMs, maxConnections, tls }: ConnectionLimits, proxy: URL | null): HttpAgent {
  const isSecure = protocol === 'https:';
  const agent = isSecure
    ? new HttpsAgent({ keepAlive: true, maxSockets: maxConnections, ...tls })
    : new HttpAgent({ keepAlive: true, maxSockets: maxConnections });
  if (proxy === null) return agent;
  const toProxy = new Pool(proxy.origin, { connect: { timeout: connectTimeoutMs }, headersTimeout: connectTimeoutMs });
  const open = async ({ host, port, servername }: Target): Promise<Duplex> => {
    const { socket, statusCode } = await toProxy.connect({ path: `${host}:${port}`, headers: credentialsOf(proxy) });
    if (statusCode !== 200) {
      socket.on('error', () => {}).destroy();
      throw new Error(`the proxy answered ${statusCode} to CONNECT`);
    }
    return isSecure ? connectTls({ socket, ...tls, ...(servername !== undefined && { servername }), ALPNProtocols: ['http/1.1'] }) : socket;
  };
  return Object.assign(agent, {
    createConnection(target: Target, connected: Connected) {
      open(target).then(
        (stream) => connected(null, stream),
        // Node reads no stream beside an error.
        (error: Error) => connected(error, undefined as never),
      );
    },
    destroy() {
      Object.getPrototypeOf(agent).destroy.call(agent);
      void toProxy.destroy();
    },
  });
}

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` };
}
