import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ServerRules } from '#shared/http-server/open-app.ts';
import { gatewayLimits } from './limits.ts';
import { brokenRequests, errorReply, routerErrors } from './plugins/error-reply.ts';
import { validation } from './plugins/validation.ts';
import { HEALTHY } from './routes/health.ts';

/** In what the router's HTTP server differs from others. */
export const routerRules: ServerRules = {
  server: 'router',
  requestIds: /^[A-Za-z0-9._-]{1,128}$/,
  // The longest id of a document.
  maxParamCharacters: 128,
  exposesHead: true,
  requestsPerConnection: null,
  errors: routerErrors,
  validation,
  brokenRequests,
  whileBooting: {
    probes: { '/health/live': { status: 200, body: HEALTHY }, '/health/ready': { status: 503, body: { status: 'booting' } } },
    refusal: errorReply(new SwitchyardError('service.not_ready', 'This gateway is still starting', { details: { retryAfterMs: gatewayLimits.retryAfterMs } })),
  },
};
