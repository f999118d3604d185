import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { beginsWithMark, withoutMark } from '#shared/http-server/json-bodies.ts';
import { quoteInexactNumbers } from '#shared/inexact-number.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { invalidField } from '../plugins/error-reply.ts';

/**
 * Reads a body, rejecting what is no JSON object with `request.invalid`. Unlike in other bodies, an integer that can't be kept exactly, and a number that exceeds
 * all doubles, is read as a string of its text: its sender is another system, which can't send it differently. Numbers with a fraction or an exponent are often
 * amounts, for which the nearest double is enough.
 */
export function objectReader(app: FastifyInstance): (request: FastifyRequest, body: Buffer) => Promise<Record<string, unknown>> {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body) =>
    new Promise((resolve, reject) => {
      const json = withoutMark(body).toString();
      // The parser would drop it.
      if (beginsWithMark(json)) return reject(new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY());
      void parse(request, json, (error, value: unknown) => {
        if (error !== null) return reject(error);
        if (!isObject(value)) return reject(invalidField('', 'must be a JSON object'));
        const tooDeep = nestingViolation(value);
        if (tooDeep !== null) return reject(invalidField(tooDeep.path, tooDeep.message));
        const exact = quoteInexactNumbers(json);
        resolve(exact === json ? value : JSON.parse(exact));
      });
    });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
