import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyServerFactory } from 'fastify';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { urlOfServer } from './url-of-server.ts';

/** How long an idle connection is kept: the framework's own value, so that a connection that was opened during the start is kept as long as any other. */
const KEEP_ALIVE_MS = 72_000;

/** A response without regard to the request. The body is sent as JSON. */
interface Fixed {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body: object;
}

/** What is answered until the app takes over. */
interface WhileBooting {
  /** What GET and HEAD get, by path. */
  probes: Readonly<Record<string, Fixed>>;
  /** What everything else gets. */
  refusal: Fixed;
  /** For `x-request-id`. */
  requestIdOf(request: IncomingMessage): string;
  /** For what can't be read as HTTP. */
  respondToBrokenRequest(error: Error & { code?: string }, socket: Socket): void;
}

export interface PublicPortOptions {
  host: string;
  /** 0: any that is free. */
  port: number;
  /** The setting that changes the port, for the message of a taken one; absent: the message names none. */
  setting?: string;
  /** Connections that the system holds until they are accepted. */
  backlog: number;
  /** How long a client may take to send a request. */
  requestTimeoutMs: number;
  whileBooting: WhileBooting;
  /** All addresses of a host name. Default: asks the system's resolver. */
  addressesOf?(host: string): Promise<string[]>;
}

/** A port that listens and is served before the app is there. */
export interface PublicPort {
  /** With the port that was really taken. */
  url: string;
  /**
   * For the app's `serverFactory`. The app's `listen` then takes over the server that listens already: it stays open, its connections too,
   * and the next request on each is the app's. The app's `close` closes it. For one app.
   */
  serverFactory: FastifyServerFactory;
  /** Closes the port and cuts its connections. Does nothing once it is closed. */
  close(): Promise<void>;
}

/**
 * Listens on a port before the app that serves it is ready, so that a taken port ends a start at once and a liveness probe is answered however
 * long the start takes.
 * @throws `service.port_taken` with the port in its details
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
    throw isPortInUse(error) ? portInUse(options, error) : error;
  }
  const url = urlOfServer(server);
  const others = await listenOnOtherAddresses(server, options);

  return {
    url,
    serverFactory: (handler) => {
      // The app listens for it from here on.
      server.off('clientError', respondToBrokenRequest);
      // Node's own listener has run; a second run would begin a new list of connections.
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

/** As the framework makes its own. */
function newServer({ requestTimeoutMs }: PublicPortOptions): Server {
  const server = createServer();
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.requestTimeout = requestTimeoutMs;
  return server;
}

/**
 * `localhost` has up to two addresses, and clients take either: the framework listens on all of them, but not for a server that it is given.
 * What arrives there is handed to the first server. An address that can't be had is left out.
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
    other.on('clientError', (error, socket) => first.emit('clientError', error, socket));
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
    // Also called when it does not listen any more.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function isPortInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

function portInUse({ host, port, setting }: PublicPortOptions, cause: unknown): SwitchyardError {
  const remedy = setting === undefined ? '' : `. Set ${setting} to a free port, or 0 for any`;
  return new SwitchyardError('service.port_taken', `Port ${port} of ${host} is taken by another program${remedy}`, { cause, details: { port } });
}
