import type { FastifyInstance } from 'fastify';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { buildApp } from './app.ts';
import { assemble } from './components.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { limits } from './limits.ts';
import { openAgentPort } from './open-agent-port.ts';
import { RequestsInFlight } from './requests-in-flight.ts';

export interface AgentGateway {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  url: string;
  /** Refuses new requests, ends long-polls and streams, lets the requests in hand finish for as long as a drain may take, and closes. */
  stop(): Promise<void>;
}

/**
 * The HTTP front of the agent server.
 * @param opened the port that it takes over, and that is closed when the start fails; absent: it opens its own
 * @throws `service.port_taken` with the port in its details, `config.invalid` when a routine can't be offered as it is
 */
export async function startAgentGateway(deps: AgentGatewayDeps, opened?: PublicPort): Promise<AgentGateway> {
  const port = opened ?? (await openAgentPort(deps.config));
  try {
    return await serveOn(port, deps);
  } catch (error) {
    await port.close();
    throw error;
  }
}

async function serveOn({ url, serverFactory }: PublicPort, deps: AgentGatewayDeps): Promise<AgentGateway> {
  const { host, port, drainTimeoutMs } = deps.config;
  const components = assemble(deps);
  const app = buildApp(deps, components, serverFactory);
  const inFlight = new RequestsInFlight(app);
  try {
    await app.listen({ host, port, backlog: limits.connectionsToAccept });
  } catch (error) {
    await app.close();
    throw error;
  }
  let stopping: Promise<void> | null = null;
  const stop = async () => {
    components.drain();
    // Still listening: who probes is told that it drains, and who asks for more is sent elsewhere.
    await inFlight.none(drainTimeoutMs);
    await closeAtOnce(app);
  };
  return {
    url,
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
