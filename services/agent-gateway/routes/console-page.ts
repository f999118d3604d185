import type { FastifyPluginAsync } from 'fastify';
import { builtPage } from '#shared/http-server/built-pages.ts';

/** GET /console: the page for operators of the agent. */
export function consolePage({ agentName }: { agentName: string }): FastifyPluginAsync {
  const send = builtPage('agent-console.html', `${agentName}: console`);
  return async (app) => {
    app.get('/console', { config: { isPage: true } }, async (request, reply) => send(request, reply));
  };
}
