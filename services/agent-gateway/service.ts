import type { FastifyInstance } from 'fastify';
import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { buildApp } from './app.ts';
import { assemble } from './components.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { limits } from './limits.ts';
import { openAgentPort } from './open-agent-port.ts';
import { RequestsInFlight } from './requests-in-flight.ts';

export interface AgentGateway {
  url: string;
  /** Refuses new requests, ends polls and streams, waits up to `drainTimeoutMs` for requests in flight, closes. */
  stop(): Promise<void>;
}

/**
 * The HTTP front of the agent server.
 * @param opened closed when the start fails; absent: a port is opened
 * @throws `service.port_taken` with the port in its details, `config.invalid` for a routine that can't be triggered as configured
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
    // Still listening: probes see the drain, new requests are refused.
    await inFlight.whenIdle(drainTimeoutMs);
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

/** Node closes idle connections itself, but not those that never sent a byte, which browsers open in advance: they would keep the process running. */
export async function closeAtOnce(app: FastifyInstance): Promise<void> {
  // Connections may arrive before the server stops listening.
  const cut = setInterval(() => app.server.closeAllConnections(), 10);
  try {
    await app.close();
  } finally {
    clearInterval(cut);
  }
}
