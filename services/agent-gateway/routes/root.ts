import type { FastifyPluginAsync } from 'fastify';
import type { Description } from '../openapi/description.ts';

/** GET /: leads a browser to the page, and answers any other client with the API's name. */
export function root({ title, version }: Description): FastifyPluginAsync {
  const body = { name: title, version, docs: '/docs', openapi: '/openapi.json' };
  return async (app) => {
    app.get('/', { config: { isPage: true } }, async (request, reply) => {
      reply.header('vary', 'accept').header('cache-control', 'no-store');
      return request.headers.accept?.includes('text/html') ? reply.redirect('/chat', 302) : reply.send(body);
    });
  };
}
