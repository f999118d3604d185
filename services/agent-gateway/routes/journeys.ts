import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Journeys } from '../journeys/journeys.ts';
import { mermaidOf, mermaidOfAll } from '../journeys/mermaid.ts';

const MERMAID = 'text/vnd.mermaid; charset=utf-8';

/** GET /journeys: the agent's routines. GET /journeys/:journey_id/graph: one as a graph, by its journey id or its routine id. `format=mermaid`: drawn. */
export function journeys({ journeys: known }: { journeys: Journeys }): FastifyPluginAsyncZod {
  const params = z.object({ journey_id: z.string() });
  const querystring = z.object({
    /** The graph as JSON, or as the text of a Mermaid flow chart. */
    format: z.enum(['json', 'mermaid']).default('json'),
  });
  return async (app) => {
    app.get('/journeys', { schema: { querystring } }, async (request, reply) => {
      if (request.query.format === 'json') return { items: await known.list() };
      return reply.type(MERMAID).send(mermaidOfAll(await known.graphs()));
    });

    app.get('/journeys/:journey_id/graph', { schema: { params, querystring } }, async (request, reply) => {
      const graph = await known.graph(request.params.journey_id);
      if (request.query.format === 'json') return graph;
      return reply.type(MERMAID).send(mermaidOf(graph));
    });
  };
}
