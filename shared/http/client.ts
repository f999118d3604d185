import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { Exchange } from './exchange.ts';

/** A body up to this size is kept by the pool for as long as the answer takes; a larger one is let go of once it is sent. */
const MAX_RETAINED_BYTES = 16 * 1024;

export interface HttpClientOptions {
  /** The part of an address that stays the same: origin, and a path or query that every request gets. */
  baseUrl: string;
  connectTimeoutMs: number;
  /** Requests beyond it wait for a free connection. */
  maxConnections: number;
}

interface HttpRequest {
  headers: Record<string, string>;
  body: string;
}

/** A request that is on its way, and its response. */
export type HttpExchange = Pick<Exchange, 'begun' | 'status' | 'header' | 'read' | 'release' | 'abort'>;

/** One server, reached over a pool of connections. There is no time limit but the one on connecting: whoever asks aborts. */
export interface HttpClient {
  /** @param path begins with `/` and follows the base's own path */
  post(path: string, request: HttpRequest): HttpExchange;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

export function openHttpClient({ baseUrl, connectTimeoutMs, maxConnections }: HttpClientOptions): HttpClient {
  const base = new URL(baseUrl);
  const [basePath, query] = [base.pathname.replace(/\/+$/, ''), base.search];
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const factory = (origin: URL, options: object) => connectionFor(origin, options, connect);
  const pool = new Pool(base.origin, { connections: maxConnections, factory, headersTimeout: 0, bodyTimeout: 0 });
  return {
    post(path, { headers, body }) {
      const exchange = new Exchange();
      const sent = sentOnce(headers, body);
      const request: ExchangeOptions = { method: 'POST', path: `${basePath}${path}${query}`, headers: sent.headers, body: sent.body, exchange };
      pool.dispatch(request, exchange);
      return exchange;
    },
    close: () => pool.destroy(),
  };
}

interface ExchangeOptions extends Dispatcher.DispatchOptions {
  /** Handed on by the pool to the connection that it chooses. */
  exchange: Exchange;
}

/** One connection of the pool. While it is being made it belongs to one request, and ends with it: it would go on connecting for nobody. */
function connectionFor(origin: URL, options: object, connect: buildConnector.connector): Dispatcher {
  let exchange: Exchange | null = null;
  const client = new Client(origin, {
    ...options,
    connect: (target, callback) => {
      let isOver = () => {};
      const socket: unknown = connect(target, (...result) => {
        isOver();
        callback(...result);
      });
      if (socket instanceof Socket) isOver = exchange?.connecting(() => socket.destroy(new Error('nobody waits for the connection any more'))) ?? isOver;
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
 * The text as it is sent, with what has to be said of it. A large one is held until it is sent and no longer: it may have a long answer,
 * and the pool keeps what it was given.
 */
function sentOnce(headers: Record<string, string>, text: string): { headers: Record<string, string>; body: Buffer | Readable } {
  // In memory of its own: a short text would keep a piece of what all buffers share, 8 KiB of it, for as long as its answer takes.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  if (bytes.byteLength <= MAX_RETAINED_BYTES) return { headers, body: bytes };
  const body = new Readable({ read: () => {} });
  // Of a request that is given up the pool tells its caller; an error that nobody hears would end the process.
  body.on('error', () => {});
  body.push(bytes);
  body.push(null);
  // A stream has no length, so it is said here: without it the body would be sent in chunks, which not all servers take.
  return { headers: { ...headers, 'content-length': String(bytes.byteLength) }, body };
}
