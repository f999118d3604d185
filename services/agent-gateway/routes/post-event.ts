import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { postEventQuery, postEventRequest } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { CarriedContext } from '#shared/telemetry/carried-context.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { CommandReplies } from '../command-replies.ts';
import type { Waits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import { postedCommand } from './posted-command.ts';
import { checkedSessionId } from './session-id.ts';

export interface PostEventDeps {
  agent: { bundleHash: string };
  commandReplies: CommandReplies;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
  clock: Clock;
  waits: Waits;
  /** What the caller sends for those that a turn calls. */
  carriedOf(request: FastifyRequest): CarriedContext | undefined;
}

/**
 * POST /sessions/:session_id/events: 201 with the event, 200 with the first one when the idempotency key repeats. A customer's message that is durable but has
 * no offset yet: 202 with its command id; 503 when moderation is to read it.
 */
export function postEvent({ agent, commandReplies, isKnownSession, clock, waits, carriedOf }: PostEventDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  return async (app) => {
    const schema = { params, querystring: postEventQuery, body: postEventRequest };
    app.post('/sessions/:session_id/events', { schema, config: { appendsCommand: true } }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const key = idempotencyKeyOf(request.headers) ?? request.body.idempotency_key ?? null;
      const carried = carriedOf(request);
      const { command, isAccepted } = postedCommand(request, {
        sessionId,
        commandId: commandIdOf(sessionId, 'post', key),
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        ...traceContextOf(contextOfRequest(request)),
        ...(carried && { carried }),
        bundleHash: agent.bundleHash,
      });
      const outcome = await commandReplies.send(command, isAccepted ? waits.acceptMs : waits.replyMs);
      if (outcome === null) {
        if (!isAccepted) throw new SwitchyardError('service.no_answer', 'the event has no offset yet; send it again with the same idempotency key');
        // The owner will refuse it: 202 would be false.
        if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
        return reply.code(202).send({ command_id: command.commandId });
      }
      // A stored reply outlives the session: processed commands are kept while a redelivery is possible.
      if (outcome.repeat && (await isKnownSession(sessionId)) === false) throw noSuchSession();
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
      // Without a key only our own retries repeat a command: one request to the caller.
      return reply.code(outcome.repeat && key !== null ? 200 : 201).send(outcome.reply.value.event);
    });
  };
}
