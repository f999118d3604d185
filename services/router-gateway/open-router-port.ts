import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openPublicPort, type PublicPort } from '#shared/http-server/open-public-port.ts';
import { type GatewayLimits, gatewayLimits } from './limits.ts';
import { errorReply, respondToBrokenRequest } from './plugins/error-reply.ts';
import { requestIdOf } from './plugins/request-id.ts';
import { HEALTHY } from './routes/health.ts';

const whileBooting = {
  probes: { '/health/live': { status: 200, body: HEALTHY }, '/health/ready': { status: 503, body: { status: 'booting' } } },
  refusal: errorReply(new SwitchyardError('service.not_ready', 'This gateway is still starting', { details: { retryAfterMs: gatewayLimits.retryAfterMs } })),
  requestIdOf,
  respondToBrokenRequest,
};

interface PortConfig {
  host: string;
  /** 0: any free port. */
  port: number;
}

/**
 * Listens on the router's public port before its bus is connected: alive, not ready. All but probes is refused with 503.
 * @param setting name of the port's setting, for the message when it is taken
 * @throws `service.port_taken`
 */
export function openRouterPort({ host, port }: PortConfig, setting?: string, limits: GatewayLimits = gatewayLimits): Promise<PublicPort> {
  const { connectionsToAccept: backlog, requestMs: requestTimeoutMs } = limits;
  return openPublicPort({ host, port, ...(setting !== undefined && { setting }), backlog, requestTimeoutMs, whileBooting });
}
