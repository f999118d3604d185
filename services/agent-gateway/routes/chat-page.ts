import type { FastifyPluginAsync } from 'fastify';
import { builtPage } from '#shared/http-server/built-pages.ts';

/** GET /chat: the page for conversations with the agent. `?session=<id>` takes one up again. */
export function chatPage({ agentName }: { agentName: string }): FastifyPluginAsync {
  const send = builtPage('chat.html', agentName);
  return async (app) => {
    app.get('/chat', { config: { isPage: true } }, async (request, reply) => send(request, reply));
  };
}
