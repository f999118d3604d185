import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyServerFactory } from 'fastify';
import { listenFailure } from './listen-failure.ts';
import { urlOfServer } from './url-of-server.ts';

/** Fastify's default, also for connections opened during the start. */
const KEEP_ALIVE_MS = 72_000;
/** The same for all public ports. */
const HOST_SETTING = 'HOST';

interface Fixed {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body: object;
}

/** Responses until the app takes over. */
export interface WhileBooting {
  /** Responses to GET and HEAD, by path. */
  probes: Readonly<Record<string, Fixed>>;
  /** Response to all other requests. */
  refusal: Fixed;
  requestIdOf(request: IncomingMessage): string;
  /** Called for bytes that are not valid HTTP. */
  respondToBrokenRequest(error: Error & { code?: string }, socket: Socket): void;
}

export interface PublicPortOptions {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Name of the port's setting, for the error of a taken port; absent: not named. */
  setting?: string;
  /** Length of the system's accept queue. */
  backlog: number;
  /** For a whole request to arrive. */
  requestTimeoutMs: number;
  whileBooting: WhileBooting;
  /** Default: the system's resolver. */
  addressesOf?(host: string): Promise<string[]>;
}

export interface PublicPort {
  /** With the actual port. */
  url: string;
  /**
   * For the `serverFactory` of one Fastify app. The app's `listen` takes over the listening server: the next request on each connection
   * goes to the app. The app's `close` closes it.
   */
  serverFactory: FastifyServerFactory;
  /** Closes the port and its connections. Idempotent. */
  close(): Promise<void>;
}

/**
 * Listens before the app is ready: a taken port fails the start at once, and liveness probes are answered throughout.
 * @throws as `listenFailure`
 */
export async function openPublicPort(options: PublicPortOptions): Promise<PublicPort> {
  const { host, port, backlog, whileBooting } = options;
  const { respondToBrokenRequest } = whileBooting;
  let serve = listenerOf(whileBooting);
  const server = newServer(options);
  server.on('request', (request, response) => serve(request, response));
  server.on('clientError', respondToBrokenRequest);
  try {
    server.listen({ host, port, backlog });
    await once(server, 'listening');
  } catch (error) {
    const { setting } = options;
    throw listenFailure({ host, port, settings: { host: HOST_SETTING, ...(setting !== undefined && { port: setting }) } }, error);
  }
  const url = urlOfServer(server);
  const others = await listenOnOtherAddresses(server, options);

  return {
    url,
    serverFactory: (handler) => {
      // The app has its own listener.
      server.off('clientError', respondToBrokenRequest);
      // Node's own listener has run; a second run would start a new connection list.
      server.removeAllListeners('listening');
      server.listen = () => {
        serve = handler;
        process.nextTick(() => server.emit('listening'));
        return server;
      };
      return server;
    },
    close: async () => {
      await Promise.all([server, ...others].map(closeServer));
    },
  };
}

function listenerOf({ probes, refusal, requestIdOf }: WhileBooting): RequestListener {
  const prepared = ({ status, headers, body }: Fixed) => {
    const text = JSON.stringify(body);
    return { status, text, headers: { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text), ...headers } };
  };
  const refused = prepared(refusal);
  const byPath = new Map(Object.entries(probes).map(([path, probe]) => [path, prepared(probe)]));
  return (request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const [path = ''] = (request.url ?? '').split('?', 1);
    const { status, headers, text } = (isRead ? byPath.get(path) : undefined) ?? refused;
    response.writeHead(status, { 'x-request-id': requestIdOf(request), ...headers }).end(text);
  };
}

/** Configured as Fastify's own server. */
function newServer({ requestTimeoutMs }: PublicPortOptions): Server {
  // The app refuses such requests in its own form.
  const server = createServer({ requireHostHeader: false });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.requestTimeout = requestTimeoutMs;
  return server;
}

/**
 * `localhost` has up to two addresses, and clients use either. Fastify does not listen on both with a given server. Requests there go to
 * the first server; an unavailable address is skipped.
 */
async function listenOnOtherAddresses(first: Server, options: PublicPortOptions): Promise<Server[]> {
  const { host, backlog, addressesOf = allAddresses } = options;
  const taken = first.address();
  if (host !== 'localhost' || taken === null || typeof taken === 'string') return [];
  const addresses = await addressesOf(host).catch(() => []);
  const opened: Server[] = [];
  for (const address of new Set(addresses)) {
    if (address === taken.address) continue;
    const other = newServer(options);
    other.on('request', (request, response) => first.emit('request', request, response));
    other.on('checkExpectation', (request, response) => first.emit('request', request, response));
    other.on('clientError', (error, socket) => first.emit('clientError', error, socket));
    other.on('connect', (request, socket) => void (first.emit('connect', request, socket) || socket.destroy()));
    other.listen({ host: address, port: taken.port, backlog });
    const isListening = await once(other, 'listening').then(
      () => true,
      () => false,
    );
    if (!isListening) continue;
    first.once('close', () => other.close());
    opened.push(other);
  }
  return opened;
}

async function allAddresses(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // The callback also runs when the server does not listen any more.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
