import type { FastifyInstance, FastifyRequest } from 'fastify';
import { withoutMark } from '#shared/http-server/json-bodies.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { changedInteger, invalidField } from '../plugins/error-reply.ts';

/** Reads a body as any other route would, rejecting what is no JSON object with `request.invalid`. */
export function objectReader(app: FastifyInstance): (request: FastifyRequest, body: Buffer) => Promise<Record<string, unknown>> {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body) =>
    new Promise((resolve, reject) => {
      const json = withoutMark(body).toString();
      void parse(request, json, (error, value: unknown) => {
        if (error !== null) return reject(error);
        if (!isObject(value)) return reject(invalidField('', 'must be a JSON object'));
        const tooDeep = nestingViolation(value);
        const refusal = tooDeep === null ? changedInteger(json) : invalidField(tooDeep.path, tooDeep.message);
        if (refusal === null) resolve(value);
        else reject(refusal);
      });
    });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
