import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { createSessionRequest } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { Answers } from '../answers.ts';
import type { SessionLog } from '../feed/session-log.ts';
import type { Waits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { traceparentOf } from '../traceparent.ts';
import { checkedSessionId } from './session-id.ts';

export interface SessionsDeps {
  agent: { id: string; bundleHash: string };
  answers: Answers;
  sessionLog: SessionLog;
  clock: Clock;
  waits: Waits;
}

/** POST /sessions: 201 with the record, once its owner has stored it. GET /sessions/:session_id: 200 with the record. */
export function sessions({ agent, answers, sessionLog, clock, waits }: SessionsDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  // A session without wishes needs no body.
  const body = z.preprocess((given) => given ?? {}, createSessionRequest);
  const querystring = z.object({ allow_greeting: z.stringbool().optional() });

  return async (app) => {
    app.post('/sessions', { schema: { body, querystring } }, async (request, reply) => {
      const { customer_id, title, metadata, labels, mode, allow_greeting } = request.body;
      const sessionId = `ses_${ulid()}`;
      const command: CommandOf<'session.create'> = {
        v: 1,
        type: 'session.create',
        sessionId,
        commandId: `${sessionId}-create`,
        sentAtMs: clock.nowMs(),
        answerTo: answers.gatewayId,
        traceparent: traceparentOf(request.headers),
        customerId: customer_id ?? `cus_${ulid()}`,
        agentId: agent.id,
        title: title ?? null,
        mode,
        metadata,
        labels,
        allowGreeting: request.query.allow_greeting ?? allow_greeting,
        bundleHash: agent.bundleHash,
      };
      const outcome = await answers.send(command, waits.answerMs);
      if (outcome === null) throw new SwitchyardError('service.no_answer', 'the session could not be created in time');
      if (!outcome.answer.ok) throw new SwitchyardError(outcome.answer.code, outcome.answer.message);
      return reply.code(201).send(outcome.answer.value.session);
    });

    app.get('/sessions/:session_id', { schema: { params } }, async (request, reply) => {
      const record = await sessionLog.record(checkedSessionId(request.params.session_id));
      if (record === null) throw noSuchSession();
      return reply.type('application/json; charset=utf-8').send(record);
    });
  };
}
