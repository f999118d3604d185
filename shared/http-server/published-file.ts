import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A file of JSON that changes with releases alone, with an ETag. Read once. */
export function publishedFile(path: URL): { body: Buffer; reply(request: FastifyRequest, reply: FastifyReply): FastifyReply } {
  const body = readFileSync(path);
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
  return {
    body,
    reply(request, reply) {
      reply.header('etag', etag).header('cache-control', 'no-cache');
      if (request.headers['if-none-match'] === etag) return reply.code(304).send();
      return reply.type('application/json; charset=utf-8').send(body);
    },
  };
}
