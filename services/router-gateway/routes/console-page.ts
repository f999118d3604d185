import type { FastifyPluginAsync } from 'fastify';
import { API_VERSIONS } from '#shared/contracts/api-versions.ts';
import { builtPage } from '#shared/http-server/built-pages.ts';

const API = { name: 'Switchyard model router', version: API_VERSIONS.router, docs: '/openapi.json', openapi: '/openapi.json' };

/**
 * GET /console: a page without content of its own: what it shows, it asks for with the management key that is typed into it. GET /: leads a browser there, and
 * answers any other client with the API's name. Both without a key.
 */
export function consolePage(): FastifyPluginAsync {
  const send = builtPage('router-console.html', 'Switchyard router');
  return async (app) => {
    app.get('/console', async (request, reply) => send(request, reply));
    app.get('/', async (request, reply) => {
      reply.header('vary', 'accept').header('cache-control', 'no-store');
      return request.headers.accept?.includes('text/html') ? reply.redirect('/console', 302) : reply.send(API);
    });
  };
}
