import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { type ToolEventReply, toolEventRequest } from '#shared/contracts/agent/tool-event.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import type { PostEventDeps } from './post-event.ts';
import { checkedSessionId } from './session-id.ts';

/** POST /sessions/:session_id/tool_events: 200 with the position of the event, the same again when the idempotency key repeats. */
export function toolEvents({ agent, commandReplies, isKnownSession, clock, waits, carriedOf }: PostEventDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  return async (app) => {
    app.post('/sessions/:session_id/tool_events', { schema: { params, body: toolEventRequest }, config: { appendsCommand: true } }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { tool_id, arguments: given, result, result_metadata, event_metadata, idempotency_key, trigger_processing } = request.body;
      const key = idempotencyKeyOf(request.headers) ?? idempotency_key ?? null;
      const { traceId, traceparent } = traceContextOf(contextOfRequest(request));
      const carried = carriedOf(request);
      const command: CommandOf<'tool-event.post'> = {
        v: COMMAND_VERSION,
        type: 'tool-event.post',
        sessionId,
        commandId: commandIdOf(sessionId, 'tool', key),
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        traceparent,
        ...(carried && { carried }),
        toolId: tool_id,
        arguments: given ?? {},
        result,
        resultMetadata: result_metadata ?? {},
        metadata: { ...event_metadata, ...(key !== null && { idempotency_key: key }) },
        triggersTurn: trigger_processing ?? false,
        traceId,
        bundleHash: agent.bundleHash,
      };
      const outcome = await commandReplies.send(command, waits.replyMs);
      if (outcome === null) throw new SwitchyardError('service.no_answer', 'the event has no offset yet; send it again with the same idempotency key');
      // A stored reply outlives the session: processed commands are kept while a redelivery is possible.
      if (outcome.repeat && (await isKnownSession(sessionId)) === false) throw noSuchSession();
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
      return reply.code(200).send(positionOf(outcome.reply.value.event as ConversationEvent));
    });
  };
}

function positionOf({ id, offset, created_at, trace_id }: ConversationEvent): ToolEventReply {
  return { event_id: id, offset, creation_utc: created_at, trace_id };
}
