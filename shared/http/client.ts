import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { type ConnectionLimits, openConnections } from './connections.ts';
import { ABORTED, Exchange } from './exchange.ts';

/** undici's pool retains a body up to this size until the response ends; a larger one only until it is sent. */
const MAX_RETAINED_BYTES = 16 * 1024;

interface HttpRequest {
  headers: Record<string, string>;
  /** A list: parts, which are sent one behind the other. */
  body: HttpBody;
}

type HttpBody = string | Uint8Array | readonly Uint8Array[];

export type HttpExchange = Pick<Exchange, 'begun' | 'status' | 'header' | 'read' | 'release' | 'abort'>;

/** An HTTP client for one server, over a connection pool. The only time limit is on connecting: callers abort. */
export interface HttpClient {
  /** @param path begins with `/`; appended to the base's path */
  post(path: string, request: HttpRequest): HttpExchange;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

/**
 * @param base origin, with a path and query common to all requests
 * @param proxy null: direct connections
 */
export function openHttpClient(base: URL, limits: ConnectionLimits, proxy: URL | null): HttpClient {
  const { origin, search: query } = base;
  const basePath = base.pathname.replace(/\/+$/, '');
  const connect = buildConnector({ timeout: limits.connectTimeoutMs, ...limits.tls });
  const connections = openConnections(base, limits, proxy, (target, options) => connectionFor(target, options, connect));
  return {
    post(path, { headers, body }) {
      const exchange = new Exchange();
      const sent = sentOnce(headers, body);
      const request: ExchangeOptions = { origin, method: 'POST', path: `${basePath}${path}${query}`, headers: sent.headers, body: sent.body, exchange };
      connections.dispatch(request, exchange);
      return exchange;
    },
    close: () => connections.destroy(),
  };
}

interface ExchangeOptions extends Dispatcher.DispatchOptions {
  /** Passed through the pool to the connection it chooses. */
  exchange: Exchange;
}

/** One direct connection of the pool. Its connect belongs to one request and is cancelled with it: undici would go on connecting. */
function connectionFor(origin: URL, options: object, connect: buildConnector.connector): Dispatcher {
  let exchange: Exchange | null = null;
  const client = new Client(origin, {
    ...options,
    connect: (target, callback) => {
      // undici would connect again for a request whose abort has closed its connection.
      if (exchange?.hasFailed === true) return queueMicrotask(() => callback(ABORTED, null));
      let isOver = () => {};
      const socket: unknown = connect(target, (...result) => {
        isOver();
        callback(...result);
      });
      if (socket instanceof Socket) isOver = exchange?.connecting(() => socket.destroy(ABORTED)) ?? isOver;
    },
  });
  const dispatch = client.dispatch.bind(client);
  client.dispatch = (request, handler) => {
    exchange = 'exchange' in request && request.exchange instanceof Exchange ? request.exchange : null;
    return dispatch(request, handler);
  };
  return client;
}

/**
 * Encodes the body and adds its headers. A large body is a stream, freed once it is sent: the pool retains what it was given for the whole
 * response.
 */
function sentOnce(headers: Record<string, string>, content: HttpBody): { headers: Record<string, string>; body: Buffer | Readable } {
  const parts = partsOf(content);
  const sizeBytes = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (sizeBytes <= MAX_RETAINED_BYTES) return { headers, body: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts) };
  const body = new Readable({ read: () => {} });
  // undici reports the abort to the handler; an unhandled 'error' event would end the process.
  body.on('error', () => {});
  for (const part of parts) body.push(part);
  body.push(null);
  // Without it a stream is sent chunked, which not all servers accept.
  return { headers: { ...headers, 'content-length': String(sizeBytes) }, body };
}

function partsOf(content: HttpBody): readonly Buffer[] {
  if (typeof content === 'string') return [encoded(content)];
  return (content instanceof Uint8Array ? [content] : content).map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength));
}

/** Not in Node's buffer pool: a short text would retain 8 KiB of it until its response ends. */
function encoded(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
