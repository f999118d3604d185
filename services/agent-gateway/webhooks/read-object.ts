import type { FastifyInstance, FastifyRequest } from 'fastify';
import { withoutMark } from '#shared/http-server/json-bodies.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { invalidField } from '../plugins/error-reply.ts';

/** Reads a body as any other route would, rejecting what is no JSON object with `request.invalid`. */
export function objectReader(app: FastifyInstance): (request: FastifyRequest, body: Buffer) => Promise<Record<string, unknown>> {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body) =>
    new Promise((resolve, reject) => {
      void parse(request, withoutMark(body).toString(), (error, value: unknown) => {
        if (error !== null) return reject(error);
        if (!isObject(value)) return reject(invalidField('', 'must be a JSON object'));
        const tooDeep = nestingViolation(value);
        if (tooDeep === null) resolve(value);
        else reject(invalidField(tooDeep.path, tooDeep.message));
      });
    });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
