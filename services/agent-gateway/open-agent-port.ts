import { errorCatalogue } from '#shared/errors/switchyard-error.ts';
import { openPublicPort, type PublicPort } from '#shared/http-server/open-public-port.ts';
import { limits } from './limits.ts';
import { respondToBrokenRequest } from './plugins/broken-request.ts';
import { RETRY_AFTER_SECONDS } from './plugins/error-reply.ts';
import { requestIdOf } from './plugins/request-id.ts';
import { REASONS } from './plugins/require-ready.ts';
import { HEALTHY } from './routes/health.ts';

const { status, agentCode } = errorCatalogue['service.not_ready'];
const BOOTING = { status: 503, body: { status: 'booting' } };

const whileBooting = {
  probes: { '/health/live': { status: 200, body: HEALTHY }, '/health/ready': BOOTING, '/health': BOOTING },
  refusal: { status, headers: { 'retry-after': String(RETRY_AFTER_SECONDS) }, body: { error: REASONS.booting, code: agentCode } },
  requestIdOf,
  respondToBrokenRequest,
};

/**
 * Listens on the public port before the stores are connected: alive, not ready. All but the probes get 503, also without a key, which is unknown until the
 * configuration is loaded.
 * @param setting named in the message when the port is taken
 * @throws `service.port_taken`
 */
export function openAgentPort({ host, port }: { host: string; port: number }, setting?: string): Promise<PublicPort> {
  const { connectionsToAccept: backlog, requestTimeoutMs } = limits;
  return openPublicPort({ host, port, ...(setting !== undefined && { setting }), backlog, requestTimeoutMs, whileBooting });
}
