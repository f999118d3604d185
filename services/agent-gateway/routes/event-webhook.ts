import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { setEventWebhookRequest } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { CommandReplies } from '../command-replies.ts';
import type { Waits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import { checkedSessionId } from './session-id.ts';

/** @throws `outbound.refused` for an address that may not be posted to */
export type CheckUrl = (url: string, hostAllowlist: readonly string[] | null) => void;

export interface EventWebhookDeps {
  agent: { bundleHash: string };
  commandReplies: CommandReplies;
  clock: Clock;
  waits: Waits;
  checkCallbackUrl: CheckUrl;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

/** PUT /sessions/:session_id/event_webhook: 200 with the address and the offset of the next event to post. */
export function eventWebhook({ agent, commandReplies, clock, waits, checkCallbackUrl, isKnownSession }: EventWebhookDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  const options = { schema: { params, body: setEventWebhookRequest }, config: { appendsCommand: true, startsNoCall: true } };
  return async (app) => {
    app.put('/sessions/:session_id/event_webhook', options, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const { url, from_offset: fromOffset } = request.body;
      const key = idempotencyKeyOf(request.headers);
      // A command for an unknown session would leave a useless processed command.
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      if (url !== null) checkEventWebhookUrl(checkCallbackUrl, url, 'url');
      const command: CommandOf<'event-webhook.set'> = {
        v: 1,
        type: 'event-webhook.set',
        sessionId,
        commandId: commandIdOf(sessionId, 'event-webhook', key),
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        traceparent: traceContextOf(contextOfRequest(request)).traceparent,
        url,
        fromOffset: fromOffset ?? null,
        bundleHash: agent.bundleHash,
      };
      const outcome = await commandReplies.send(command, waits.replyMs);
      if (outcome === null)
        throw new SwitchyardError('service.no_answer', 'the event webhook could not be set in time; send it again with the same idempotency key');
      // A stored reply outlives the session: processed commands are kept while a redelivery is possible.
      if (outcome.repeat && (await isKnownSession(sessionId)) === false) throw noSuchSession();
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message, { details: { path: '/from_offset' } });
      return reply.code(200).send(outcome.reply.value.event_webhook);
    });
  };
}

/** @param field of the body, named by the error. @throws `outbound.refused` */
export function checkEventWebhookUrl(check: CheckUrl, url: string, field: string): void {
  try {
    check(url, null);
  } catch (error) {
    if (!(error instanceof SwitchyardError) || error.code !== 'outbound.refused') throw error;
    const details = { ...error.details, path: `/${field}` };
    throw new SwitchyardError('outbound.refused', `${field} is not allowed: ${error.message}`, { cause: error, details });
  }
}
