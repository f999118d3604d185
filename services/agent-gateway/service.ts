import type { PublicPort } from '#shared/http-server/open-public-port.ts';
import { type Serving, serve } from '#shared/http-server/serve.ts';
import { buildApp } from './app.ts';
import { assemble } from './components.ts';
import type { AgentGatewayDeps } from './deps.ts';
import { limits } from './limits.ts';
import { openAgentPort } from './open-agent-port.ts';
import { RequestsInFlight } from './requests-in-flight.ts';

export interface AgentGateway extends Serving {
  /** Resolves once requests are admitted. @param assertWanted called between two checks: what it throws ends the wait */
  untilReady(assertWanted?: () => void): Promise<void>;
}

/**
 * The HTTP front of the agent server. `stop` refuses new requests, ends polls and streams, waits up to `drainTimeoutMs` for requests in flight, closes.
 * @param opened closed when the start fails; absent: a port is opened
 * @throws `service.port_taken` with the port in its details, `config.invalid` for a routine that can't be triggered as configured
 */
export async function startAgentGateway(deps: AgentGatewayDeps, opened?: PublicPort): Promise<AgentGateway> {
  const { host, port, drainTimeoutMs } = deps.config;
  const publicPort = opened ?? (await openAgentPort({ host, port }));
  const components = assemble(deps);
  const inFlight = new RequestsInFlight();
  const serving = await serve(publicPort, {
    host,
    port,
    backlog: limits.connectionsToAccept,
    build: (serverFactory) => {
      const app = buildApp(deps, components, serverFactory);
      inFlight.follow(app);
      return app;
    },
    drain: async () => {
      components.drain();
      await inFlight.whenIdle(drainTimeoutMs);
    },
    cutAfterMs: limits.cutAfterMs,
  });
  return { ...serving, untilReady: (assertWanted) => components.gate.untilReady(assertWanted) };
}
