import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type ErrorSink, sendError } from '#shared/http-server/error-replies.ts';
import type { ReadinessGate } from '../readiness.ts';
import { type AgentKey, unauthorized } from './agent-auth.ts';
import { invalidField, noSuchWebhook } from './error-reply.ts';
import { notReady } from './require-ready.ts';

interface UnroutableDeps extends ErrorSink {
  key: AgentKey;
  gate: ReadinessGate;
}

/** Replies to requests with an address that the router can't parse. No hooks run for them: the order of refusals is repeated here. */
export function unroutable({ key, gate, ...sink }: UnroutableDeps) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const isWebhook = request.method === 'POST' && request.raw.url?.startsWith('/webhooks/') === true;
    const refusal = async () => {
      if (!isWebhook && key.credentialOf(request.headers) === null) return unauthorized();
      const readiness = await gate.admits();
      if (readiness !== 'ready') return notReady(readiness, reply);
      if (isWebhook) return noSuchWebhook();
      if (error.code === 'FST_ERR_MAX_PARAM_LENGTH') return new SwitchyardError('request.not_found', 'there is nothing at this address');
      return invalidField('/address', 'is not well-formed');
    };
    reply.header('x-request-id', request.id);
    // Can't reject: the gate resolves even without a database.
    void refusal().then((found) => sendError(found, request, reply, sink));
  };
}
