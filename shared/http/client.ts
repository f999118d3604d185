import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';

/** After this much, or this long, a response that nobody reads any more costs more than a new connection. */
const RELEASE_MAX_BYTES = 64 * 1024;
const RELEASE_MAX_MS = 1_000;

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
  /** Closes the connection at once, in whatever state the request is. */
  signal: AbortSignal;
}

export interface HttpResponse {
  status: number;
  /** A header's first value; null when there is none. The name is in lower case. */
  header(name: string): string | null;
  /** The body as it comes from the network. Whoever leaves the loop early goes on to `release` or `destroy`. */
  chunks: AsyncIterable<Uint8Array>;
  /** Nothing more is wanted, and the end is near: what is left is read and dropped, so that the connection can serve again. */
  release(): void;
  /** Closes the connection. */
  destroy(): void;
}

/** One server, reached over a pool of connections. There is no time limit but the one on connecting: the signal is the caller's. */
export interface HttpClient {
  /** @param path begins with `/` and follows the base's own path. @throws the network's error, or the signal's reason */
  post(path: string, request: HttpRequest): Promise<HttpResponse>;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

export function openHttpClient({ baseUrl, connectTimeoutMs, maxConnections }: HttpClientOptions): HttpClient {
  const base = new URL(baseUrl);
  const basePath = base.pathname.replace(/\/+$/, '');
  const connect = buildConnector({ timeout: connectTimeoutMs });
  const factory = (origin: URL, options: object) => connectionFor(origin, options, connect);
  const pool = new Pool(base.origin, { connections: maxConnections, factory, headersTimeout: 0, bodyTimeout: 0 });
  const send = async (path: string, headers: Record<string, string>, body: SentOnce, signal: AbortSignal): Promise<HttpResponse> => {
    signal.throwIfAborted();
    // A stream has no length, so it is said here: without it the body would be sent in chunks, which not all servers take.
    const sized = { ...headers, 'content-length': String(body.sizeBytes) };
    const posted = pool.request({ method: 'POST', path: `${basePath}${path}${base.search}`, headers: sized, body: body.chunks, signal });
    const response = await orAborted(posted, signal);
    const stream = response.body;
    // An abort may come when nobody is reading, and an error that nobody hears would end the process.
    stream.on('error', () => {});
    return {
      status: response.statusCode,
      header: (name) => [response.headers[name]].flat()[0] ?? null,
      chunks: stream.iterator({ destroyOnReturn: false }),
      release() {
        stream.dump({ limit: RELEASE_MAX_BYTES, signal: AbortSignal.timeout(RELEASE_MAX_MS) }).catch(() => {});
      },
      destroy() {
        stream.destroy();
      },
    };
  };
  return {
    // Not async: its frame would hold the text for as long as the answer takes to begin.
    post: (path, { headers, body, signal }) => send(path, headers, sentOnce(body), signal),
    close: () => pool.destroy(),
  };
}

/** One connection of the pool. While it is being made it belongs to one request, and ends with it: it would go on connecting for nobody. */
function connectionFor(origin: URL, options: object, connect: buildConnector.connector): Dispatcher {
  let signal: AbortSignal | null = null;
  const client = new Client(origin, {
    ...options,
    connect: (target, callback) => {
      const wanted = signal;
      const socket: unknown = connect(target, (...result) => {
        wanted?.removeEventListener('abort', stop);
        callback(...result);
      });
      const stop = () => {
        if (socket instanceof Socket) socket.destroy(new Error('nobody waits for the connection any more'));
      };
      if (wanted?.aborted === true) stop();
      else wanted?.addEventListener('abort', stop, { once: true });
    },
  });
  const dispatch = client.dispatch.bind(client);
  client.dispatch = (request, handler) => {
    signal = 'signal' in request && request.signal instanceof AbortSignal ? request.signal : null;
    return dispatch(request, handler);
  };
  return client;
}

interface SentOnce {
  sizeBytes: number;
  chunks: Readable;
}

/** The bytes of a text, held until they are sent and no longer: a large request may have a long answer, and the pool keeps what it was given. */
function sentOnce(text: string): SentOnce {
  const bytes = Buffer.from(text);
  const chunks = new Readable({ read: () => {} });
  // Of a request that is given up the pool tells its caller; an error that nobody hears would end the process.
  chunks.on('error', () => {});
  chunks.push(bytes);
  chunks.push(null);
  return { sizeBytes: bytes.byteLength, chunks };
}

/** A request that still waits for its connection learns of an abort only when it gets one: its caller does not wait for that. */
function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
