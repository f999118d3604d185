import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { listSessionsQuery } from '#shared/contracts/agent/session.ts';
import { limits } from '../limits.ts';
import { cursorOf, positionOf } from '../page-cursor.ts';
import type { SessionList } from '../session-list.ts';

/**
 * GET /sessions: 200 with `{items, total_count, total_count_is_exact, has_more, next_cursor}`, of one customer, with one label, or all that are not deleted.
 * Sessions of runs are listed from the run's first step.
 */
export function listSessions({ sessionList }: { sessionList: SessionList }): FastifyPluginAsyncZod {
  return async (app) => {
    app.get('/sessions', { schema: { querystring: listSessionsQuery } }, async (request, reply) => {
      const { customer_id: customerId = null, label = null, sort, limit, cursor } = request.query;
      const after = cursor === undefined ? null : positionOf('sessions', cursor);
      const filter = { customerId, label };
      const { records, next, count } = await sessionList.page(filter, { sort, after, limit });
      const about = {
        total_count: count,
        total_count_is_exact: count < limits.countedSessions,
        has_more: next !== null,
        next_cursor: next === null ? null : cursorOf('sessions', next),
      };
      // Records pass through as they are stored.
      return reply.type('application/json; charset=utf-8').send(`{"items":[${records}],${JSON.stringify(about).slice(1)}`);
    });
  };
}
