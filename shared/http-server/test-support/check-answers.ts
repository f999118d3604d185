import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type PublishedApi, templateOf } from './openapi-document.ts';

/**
 * Notes every JSON answer of an app that is not as its published operation says: an unknown status, a field too many, one of another type.
 * @param pathOf of an operation in the table; null: it is not published
 */
export function checkAnswers<Access extends string>(app: FastifyInstance, api: PublishedApi<Access>, problems: string[], pathOf = templateOf): void {
  app.addHook('onSend', async (request, reply, sent) => {
    const payload = sent instanceof Readable ? await buffer(sent) : sent;
    const [media = ''] = String(reply.getHeader('content-type')).split(';');
    const path = request.routeOptions.url === undefined ? null : pathOf(request.routeOptions.url);
    const problem = path === null ? null : problemOf(request, path, { statusCode: reply.statusCode, media }, payload, api);
    if (problem !== null) problems.push(`${request.method} ${request.url} ${reply.statusCode}: ${problem}`);
    return sent instanceof Readable ? Readable.from([payload]) : payload;
  });
}

function problemOf<Access extends string>(
  { method }: FastifyRequest,
  path: string,
  { statusCode: status, media }: Answered,
  payload: unknown,
  api: PublishedApi<Access>,
): string | null {
  if (method === 'HEAD') return null;
  const operation = api.operations[`${method} ${path}`];
  if (operation === undefined) return 'the operation is not in the table';
  const body = operation.answers[status];
  if (body === null || (body !== undefined && 'media' in body)) return null;
  if (body === undefined && !api.refusalsOf(method, operation).includes(status) && !ANY.includes(status)) return 'the operation has no such status';
  // What a form gets.
  if (media === 'text/html' && api.security[operation.access].length === 0) return null;
  if (body?.or !== undefined && body.or === media) return null;
  const text = Buffer.isBuffer(payload) ? payload.toString('utf8') : String(payload);
  return strict(body?.json ?? api.errorAnswer).safeParse(JSON.parse(text)).error?.message ?? null;
}

/** Those of every operation: overload, and faults that tests plant. */
const ANY = [500, 503];

interface Answered {
  statusCode: number;
  media: string;
}

/** Objects of the schema, at any depth of unions and lists, refuse fields that they do not name. Loose ones stay as they are. */
export function strict(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) {
    if (schema.def.catchall instanceof z.ZodUnknown) return schema;
    return z.strictObject(Object.fromEntries(Object.entries(schema.shape).map(([name, field]) => [name, strict(field as z.ZodType)])));
  }
  if (schema instanceof z.ZodArray) return z.array(strict(schema.element as z.ZodType));
  if (schema instanceof z.ZodUnion) return z.union(schema.options.map((option) => strict(option as z.ZodType)) as [z.ZodType, z.ZodType]);
  if (schema instanceof z.ZodNullable) return strict(schema.unwrap() as z.ZodType).nullable();
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return strict(schema.unwrap() as z.ZodType).optional();
  return schema;
}
