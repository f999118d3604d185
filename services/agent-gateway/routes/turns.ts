import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { listTurnsQuery, oneTurnQuery } from '#shared/contracts/agent/turn-record.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import type { TurnRecords } from '../turns/turn-records.ts';
import { checkedSessionId } from './session-id.ts';

interface TurnsDeps {
  turnRecords: TurnRecords;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

const TRACE_ID = /^[0-9a-f]{32}$/;

/**
 * GET /sessions/:session_id/turns: 200 with `{items, has_more, next_cursor}`, newest first. GET /sessions/:session_id/turns/:trace_id: one of them, with the
 * reasons for what it has decided.
 */
export function turns({ turnRecords, isKnownSession }: TurnsDeps): FastifyPluginAsyncZod {
  const ofSession = z.object({ session_id: z.string() });
  const ofTurn = ofSession.extend({ trace_id: z.string() });
  return async (app) => {
    app.get('/sessions/:session_id/turns', { schema: { params: ofSession, querystring: listTurnsQuery } }, async (request) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { items, next } = await turnRecords.page(sessionId, request.query.cursor ?? null, request.query.limit);
      if (items.length === 0 && (await isKnownSession(sessionId)) === false) throw noSuchSession();
      return { items, has_more: next !== null, next_cursor: next === null ? null : String(next) };
    });

    app.get('/sessions/:session_id/turns/:trace_id', { schema: { params: ofTurn, querystring: oneTurnQuery } }, async (request) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { trace_id: traceId } = request.params;
      const record = TRACE_ID.test(traceId) ? await turnRecords.one(sessionId, traceId, request.query.begin_offset ?? null) : null;
      if (record !== null) return record;
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      throw new SwitchyardError('request.not_found', 'there is no such turn in the session');
    });
  };
}
