import type { FastifyPluginAsync } from 'fastify';
import { plainPageHeaders } from '#shared/http-server/plain-page.ts';
import type { Description } from '../openapi/description.ts';
import { docsPage } from '../openapi/docs-page.ts';

/** GET /openapi.json: the description of this API (OpenAPI 3.1), with an ETag. GET /docs: the same as a page. */
export function publishedApi({ file: { body, reply: send } }: Description): FastifyPluginAsync {
  let page: string | null = null;
  return async (app) => {
    app.get('/openapi.json', async (request, reply) => send(request, reply));
    app.get('/docs', { config: { isPage: true } }, async (_request, reply) => {
      page ??= docsPage(JSON.parse(body.toString('utf8')));
      return reply.headers(plainPageHeaders()).send(page);
    });
  };
}
