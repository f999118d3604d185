import type { FastifyPluginAsync } from 'fastify';
import { publishedFile } from '#shared/http-server/published-file.ts';

/** The build copies the folder. */
const FILE = new URL('../../../schemas/router/1/openapi.json', import.meta.url);

/** GET /openapi.json: the description of this API (OpenAPI 3.1), with an ETag. */
export function publishedApi(): FastifyPluginAsync {
  const { reply: send } = publishedFile(FILE);
  return async (app) => {
    app.get('/openapi.json', async (request, reply) => send(request, reply));
  };
}
