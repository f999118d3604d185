import type { onRequestHookHandler } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { preparedRefusal } from '#shared/http-server/error-replies.ts';
import { errorReply } from './error-reply.ts';

const refuseManagement = forbidden('A management key calls no model: use another key');
const requireManagement = forbidden('This request needs a management key');

/** What a kind of key reaches: checks behind `bearerAuth`. Requests with the platform's keys pass the first and not the second. */
export const keyScopes = {
  modelsOnly: ((request, reply, done) => {
    if (request.callerKey?.isManagement === true) return refuseManagement(reply);
    done();
  }) satisfies onRequestHookHandler,
  managementOnly: ((request, reply, done) => {
    if (request.callerKey?.isManagement !== true) return requireManagement(reply);
    done();
  }) satisfies onRequestHookHandler,
};

function forbidden(message: string) {
  return preparedRefusal(new SwitchyardError('request.forbidden', message), errorReply);
}
