import type { FastifyPluginAsync } from 'fastify';
import { escaped, plainPage, plainPageHeaders } from '#shared/http-server/plain-page.ts';

/** GET /chat: states which agent is served. Conversations are held through the API. */
export function chatPage({ agentName }: { agentName: string }): FastifyPluginAsync {
  const page = plainPage(
    agentName,
    `<p>You are logged in to the agent ${escaped(agentName)}. This release has no chat in the browser: programs hold conversations through the API, at <code>/sessions</code>.</p>
<form method="post" action="/auth/logout"><p><button type="submit">Log out</button></p></form>`,
  );
  return async (app) => {
    app.get('/chat', { config: { isPage: true } }, async (_request, reply) => reply.headers({ ...plainPageHeaders(), 'cache-control': 'no-store' }).send(page));
  };
}
