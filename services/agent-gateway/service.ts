import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { buildApp } from './app.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { limits } from './limits.ts';
import { assemble } from './parts.ts';
import { RequestsInHand } from './requests-in-hand.ts';

export interface AgentGateway {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  url: string;
  /** Refuses new requests, ends long-polls and streams, lets the requests in hand finish for as long as a drain may take, and closes. */
  stop(): Promise<void>;
}

/** The HTTP front of the agent server. @throws `service.port_taken` with the port in its details, `config.invalid` when a routine can't be offered as it is */
export async function startAgentGateway(deps: AgentGatewayDeps): Promise<AgentGateway> {
  const { host, port, drainTimeoutMs } = deps.config;
  const parts = assemble(deps);
  const app = buildApp(deps, parts);
  const inHand = new RequestsInHand(app);
  try {
    await app.listen({ host, port, backlog: limits.connectionsToAccept });
  } catch (error) {
    await app.close();
    if (isPortTaken(error)) throw new SwitchyardError('service.port_taken', `port ${port} of ${host} is taken`, { cause: error, details: { port } });
    throw error;
  }
  let stopping: Promise<void> | null = null;
  const stop = async () => {
    parts.drain();
    // Still listening: who probes is told that it drains, and who asks for more is sent elsewhere.
    await inHand.none(drainTimeoutMs);
    await closeAtOnce(app);
  };
  return {
    url: urlOf(app),
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/**
 * Closes and cuts what is still connected. Node closes idle connections by itself, but not those on which nothing was ever sent, and
 * browsers open such ones in advance: they would hold a process that has nothing left to do.
 */
export async function closeAtOnce(app: FastifyInstance): Promise<void> {
  // Again and again, since one may come in before the server has stopped listening.
  const cut = setInterval(() => app.server.closeAllConnections(), 10);
  try {
    await app.close();
  } finally {
    clearInterval(cut);
  }
}

function urlOf(app: FastifyInstance): string {
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new TypeError('a server that listens on a port has its address');
  return `http://${reachable(address)}:${address.port}`;
}

/** A server on all addresses is reached on the loopback one. */
function reachable({ address, family }: AddressInfo): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return family === 'IPv6' ? `[${address}]` : address;
}

function isPortTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
