import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** Of nginx: from the response until the connection is cut. */
const LINGER_MS = 30_000;
/** Twice the largest body that a server accepts, and what arrives between two checks. */
const LINGER_BYTES = 64 * 1_024 * 1_024;
const CHECK_EVERY_MS = 50;

interface LingerLimits {
  forMs: number;
  bytes: number;
}

interface Lingering {
  request: IncomingMessage;
  limits: LingerLimits;
}

/** The newest refused request of each connection: a connection that is kept may have thousands. */
const lingering = new WeakMap<Socket, Lingering>();

/**
 * For a response that closes the connection while its request still arrives: ends the sending side, and reads and drops the rest of the request, within
 * limits, before the connection is closed. With unread bytes the system resets a connection that is closed, and a client that still writes loses the response.
 */
export function lingerOnClose(request: IncomingMessage, limits: LingerLimits = { forMs: LINGER_MS, bytes: LINGER_BYTES }): void {
  const { socket } = request;
  // A request without a connection, as of `inject`.
  if (!(socket instanceof Socket)) return;
  const isPrepared = lingering.has(socket);
  lingering.set(socket, { request, limits });
  if (isPrepared) return;
  const closeSoon = socket.destroySoon.bind(socket);
  // Node calls it once the response is written.
  socket.destroySoon = () => {
    socket.destroySoon = closeSoon;
    const last = lingering.get(socket);
    lingering.delete(socket);
    if (last === undefined || last.request.complete || socket.destroyed) return closeSoon();
    dropRest(socket, last, closeSoon);
  };
}

function dropRest(socket: Socket, { request, limits }: Lingering, closeSoon: () => void): void {
  const until = socket.bytesRead + limits.bytes;
  const late = setTimeout(closeSoon, limits.forMs);
  // A request that Node drops emits no data.
  const check = setInterval(() => socket.bytesRead > until && closeSoon(), CHECK_EVERY_MS);
  socket.once('close', () => {
    clearTimeout(late);
    clearInterval(check);
  });
  request.once('end', closeSoon);
  socket.end();
}
