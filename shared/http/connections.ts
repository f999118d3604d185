import type { Dispatcher } from 'undici';
import { Pool, ProxyAgent } from 'undici';

/** Certificates beside Node's own; PEM. */
interface ConnectionTls {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

/** Of the connections to one server. Callers bound the time of a request and the size of its response. */
export interface ConnectionLimits {
  /** Through a proxy: for each of the connection to it, its tunnel, and TLS. */
  connectTimeoutMs: number;
  /** Further requests wait for a free connection. */
  maxConnections: number;
  tls?: ConnectionTls;
}

/**
 * A connection pool for one server.
 * @param proxy null: direct connections. A proxy is asked for a tunnel (CONNECT), also for http
 * @param factory of the direct connections; default: undici's own
 */
export function openConnections(
  { origin }: URL,
  { connectTimeoutMs: timeout, maxConnections: connections, tls }: ConnectionLimits,
  proxy: URL | null,
  factory?: Pool.Options['factory'],
): Dispatcher {
  const shared = { connections, headersTimeout: 0, bodyTimeout: 0 };
  if (proxy === null) return new Pool(origin, { ...shared, connect: { timeout, ...tls }, ...(factory && { factory }) });
  return new ProxyAgent({
    ...shared,
    uri: proxy.href,
    proxyTls: { timeout },
    requestTls: { timeout, ...tls },
    // undici's default for the reply to CONNECT is five minutes.
    clientFactory: (url, options) => new Pool(url, { ...options, headersTimeout: timeout }),
  });
}
