import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ServerRules } from '#shared/http-server/open-app.ts';
import { limits } from './limits.ts';
import { agentErrors, brokenRequests, replyTo } from './plugins/error-reply.ts';
import { REASONS } from './plugins/require-ready.ts';
import { validation } from './plugins/validation.ts';
import { HEALTHY } from './routes/health.ts';

const BOOTING = { status: 503, body: { status: 'booting' } };

/** In what the agent's HTTP server differs from others. */
export const agentRules: ServerRules = {
  server: 'agent',
  requestIds: /^[\x21-\x7e]{1,128}$/,
  maxParamCharacters: limits.idCharacters,
  exposesHead: false,
  requestsPerConnection: limits.requestsPerConnection,
  errors: agentErrors,
  validation,
  brokenRequests,
  whileBooting: {
    probes: { '/health/live': { status: 200, body: HEALTHY }, '/health/ready': BOOTING, '/health': BOOTING },
    refusal: replyTo(new SwitchyardError('service.not_ready', REASONS.booting)),
  },
};
