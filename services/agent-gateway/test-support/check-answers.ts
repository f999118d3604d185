import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { errorAnswer } from '#shared/contracts/agent/answers.ts';
import { operations, refusalsOf } from '../openapi/operations.ts';
import { templateOf } from './openapi-document.ts';

/** Notes every JSON answer of an app that is not as its published operation says: an unknown status, a field too many, one of another type. */
export function checkAnswers(app: FastifyInstance, problems: string[]): void {
  app.addHook('onSend', async (request, reply, payload) => {
    const [media = ''] = String(reply.getHeader('content-type')).split(';');
    const problem = problemOf(request, { statusCode: reply.statusCode, media }, payload);
    if (problem !== null) problems.push(`${request.method} ${request.url} ${reply.statusCode}: ${problem}`);
    return payload;
  });
}

function problemOf({ method, routeOptions }: FastifyRequest, { statusCode: status, media }: Answered, payload: unknown): string | null {
  const { url } = routeOptions;
  if (url === undefined || url.includes('*') || method === 'HEAD') return null;
  const operation = operations[`${method} ${templateOf(url)}`];
  if (operation === undefined) return 'the operation is not in the table';
  const body = operation.answers[status];
  if (body === null || (body !== undefined && 'media' in body)) return null;
  if (body === undefined && !refusalsOf(method, operation).includes(status) && !ANY.includes(status)) return 'the operation has no such status';
  // What a form gets.
  if (media === 'text/html' && operation.access === 'none') return null;
  if (body?.or !== undefined && body.or === media) return null;
  const text = Buffer.isBuffer(payload) ? payload.toString('utf8') : String(payload);
  return strict(body?.json ?? errorAnswer).safeParse(JSON.parse(text)).error?.message ?? null;
}

/** Those of every operation: overload, and faults that tests plant. */
const ANY = [500, 503];

interface Answered {
  statusCode: number;
  media: string;
}

/** Objects of the schema, at any depth of unions and lists, refuse fields that they do not name. */
function strict(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodObject)
    return z.strictObject(Object.fromEntries(Object.entries(schema.shape).map(([name, field]) => [name, strict(field as z.ZodType)])));
  if (schema instanceof z.ZodArray) return z.array(strict(schema.element as z.ZodType));
  if (schema instanceof z.ZodUnion) return z.union(schema.options.map((option) => strict(option as z.ZodType)) as [z.ZodType, z.ZodType]);
  if (schema instanceof z.ZodNullable) return strict(schema.unwrap() as z.ZodType).nullable();
  return schema;
}
