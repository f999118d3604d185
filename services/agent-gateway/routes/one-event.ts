import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { SessionLog } from '../feed/session-log.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { isEventId, noSuchEvent } from './event-id.ts';
import { checkedSessionId } from './session-id.ts';

interface OneEventDeps {
  sessionLog: SessionLog;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

/** GET /sessions/:session_id/events/:event_id: 200 with the event as readers of the log get it. */
export function oneEvent({ sessionLog, isKnownSession }: OneEventDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string(), event_id: z.string() });
  return async (app) => {
    app.get('/sessions/:session_id/events/:event_id', { schema: { params } }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { event_id: eventId } = request.params;
      const event = isEventId(eventId) ? await sessionLog.event(sessionId, eventId) : null;
      if (event !== null) return reply.type('application/json; charset=utf-8').send(event);
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      throw noSuchEvent();
    });
  };
}
