import type { FastifyInstance, FastifyRequest } from 'fastify';
import { withoutMark } from '#shared/http-server/json-bodies.ts';
import { quoteInexactIntegers } from '#shared/inexact-number.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { changedNumber, invalidField } from '../plugins/error-reply.ts';

/**
 * Reads a body, rejecting what is no JSON object with `request.invalid`. Unlike in other bodies, an integer that can't be kept exactly is read as a string of its
 * digits: its sender is another system, which can't send it differently. Any other number that exceeds all doubles is rejected.
 */
export function objectReader(app: FastifyInstance): (request: FastifyRequest, body: Buffer) => Promise<Record<string, unknown>> {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body) =>
    new Promise((resolve, reject) => {
      const json = withoutMark(body).toString();
      void parse(request, json, (error, value: unknown) => {
        if (error !== null) return reject(error);
        if (!isObject(value)) return reject(invalidField('', 'must be a JSON object'));
        const tooDeep = nestingViolation(value);
        if (tooDeep !== null) return reject(invalidField(tooDeep.path, tooDeep.message));
        const exact = quoteInexactIntegers(json);
        const changed = changedNumber(exact);
        if (changed !== null) return reject(changed);
        resolve(exact === json ? value : JSON.parse(exact));
      });
    });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
