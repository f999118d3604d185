import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import { deleteEventsQuery, patchEventRequest } from '#shared/contracts/agent/change-events.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { Outcome } from '../command-replies.ts';
import type { EventFeeds } from '../feed/event-feeds.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { isEventId, noSuchEvent } from './event-id.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import type { PatchSessionDeps } from './patch-session.ts';
import { checkedSessionId } from './session-id.ts';

export interface ChangeEventsDeps extends PatchSessionDeps {
  feeds: Pick<EventFeeds, 'noteChange'>;
}

/**
 * PATCH /sessions/:session_id/events/:event_id: 200 with the changed event. DELETE /sessions/:session_id/events: 204, also when there is nothing to delete;
 * 409 during a run, and during a turn unless `force` cancels it. Both answer a repeated `Idempotency-Key` as the first time.
 */
export function changeEvents({ commandReplies, clock, waits, isKnownSession, feeds }: ChangeEventsDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  const headerOf = () => ({ v: COMMAND_VERSION, sentAtMs: clock.nowMs(), answerTo: commandReplies.gatewayId }) as const;

  /** @param field that a refusal of the owner is about */
  const accepted = async (outcome: Outcome, sessionId: string, field: string): Promise<Record<string, unknown>> => {
    if (outcome === null) throw new SwitchyardError('service.no_answer', 'the log could not be changed in time; send it again with the same idempotency key');
    // A stored reply outlives the session: processed commands are kept while a redelivery is possible.
    if (outcome.repeat && (await isKnownSession(sessionId)) === false) throw noSuchSession();
    const { reply } = outcome;
    if (!reply.ok) throw new SwitchyardError(reply.code, reply.message, reply.code === 'request.invalid' ? { details: { path: field } } : {});
    // This gateway's readers see the change at once, also when its notice comes late.
    feeds.noteChange(sessionId);
    return reply.value;
  };

  return async (app) => {
    const ofEvent = params.extend({ event_id: z.string() });
    const patching = { schema: { params: ofEvent, body: patchEventRequest }, config: { appendsCommand: true, startsNoCall: true } };
    app.patch('/sessions/:session_id/events/:event_id', patching, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { event_id: eventId } = request.params;
      const key = idempotencyKeyOf(request.headers);
      // A command for an unknown session would leave a useless processed command.
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      if (!isEventId(eventId)) throw noSuchEvent();
      const command: CommandOf<'event.patch'> = {
        ...headerOf(),
        type: 'event.patch',
        sessionId,
        commandId: commandIdOf(sessionId, 'event-patch', key === null ? null : `${eventId} ${key}`),
        traceparent: traceContextOf(contextOfRequest(request)).traceparent,
        eventId,
        setMetadata: request.body.metadata.set,
        unsetMetadata: request.body.metadata.unset,
      };
      const value = await accepted(await commandReplies.send(command, waits.replyMs), sessionId, '/metadata');
      return reply.code(200).send(value['event']);
    });

    const deleting = { schema: { params, querystring: deleteEventsQuery }, config: { appendsCommand: true, startsNoCall: true } };
    app.delete('/sessions/:session_id/events', deleting, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const key = idempotencyKeyOf(request.headers);
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      const command: CommandOf<'events.delete'> = {
        ...headerOf(),
        type: 'events.delete',
        sessionId,
        commandId: commandIdOf(sessionId, 'events-delete', key),
        traceparent: traceContextOf(contextOfRequest(request)).traceparent,
        minOffset: request.query.min_offset,
        force: request.query.force,
      };
      await accepted(await commandReplies.send(command, waits.replyMs), sessionId, '/min_offset');
      return reply.code(204).send();
    });
  };
}
