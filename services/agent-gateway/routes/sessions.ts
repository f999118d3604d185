import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { createSessionRequest, type SessionRecord, sessionOfRun } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { CommandReplies } from '../command-replies.ts';
import type { CustomerRows } from '../customers/customer-rows.ts';
import { deleteSession } from '../customers/delete-sessions.ts';
import { customerOfSession, keepsCustomer, noCustomer } from '../customers/session-customer.ts';
import type { AwaitedSession, SessionLog } from '../feed/session-log.ts';
import type { Waits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import type { ProcessedCommands } from '../processed-commands.ts';
import { type CheckUrl, checkEventWebhookUrl } from './event-webhook.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import { newSessionIds } from './new-session-ids.ts';
import { checkedSessionId } from './session-id.ts';

export interface SessionsDeps {
  agent: { id: string; bundleHash: string };
  commandReplies: CommandReplies;
  processedCommands: ProcessedCommands;
  customerRows: Pick<CustomerRows, 'byId' | 'insert' | 'insertUnlessProcessed' | 'shared'>;
  sessionLog: SessionLog;
  clock: Clock;
  waits: Waits;
  checkCallbackUrl: CheckUrl;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

/**
 * POST /sessions: 201 with the record, once its owner has stored it; 200 with the first one when the `Idempotency-Key` repeats. GET /sessions/:session_id: 200
 * with the record. DELETE /sessions/:session_id: 204 once deleted, 404 afterwards, unless the key repeats.
 */
export function sessions(deps: SessionsDeps): FastifyPluginAsyncZod {
  const { agent, commandReplies, processedCommands, customerRows, sessionLog, clock, waits, checkCallbackUrl, isKnownSession } = deps;
  const params = z.object({ session_id: z.string() });
  // The body is optional.
  const body = z.preprocess((given) => given ?? {}, createSessionRequest);
  const querystring = z.object({
    /** As the field of the body, which it overrules. */
    allow_greeting: z.stringbool().optional(),
  });
  return async (app) => {
    app.post('/sessions', { schema: { body, querystring }, config: { appendsCommand: true } }, async (request, reply) => {
      const { customer_id, title, metadata, labels, mode, allow_greeting, event_webhook_url: eventWebhookUrl } = request.body;
      if (eventWebhookUrl != null) checkEventWebhookUrl(checkCallbackUrl, eventWebhookUrl, 'event_webhook_url');
      const key = idempotencyKeyOf(request.headers);
      const { sessionId, guestId } = newSessionIds(agent.id, key);
      const commandId = `${sessionId}-create`;
      const first = key === null ? null : await processedCommands.read(sessionId, commandId);
      if (first !== null && (await isKnownSession(sessionId)) === false) {
        if (!first.ok) throw new SwitchyardError(first.code, first.message);
        return reply.code(200).send(first.value.session);
      }
      const { traceparent } = traceContextOf(contextOfRequest(request));
      const command: CommandOf<'session.create'> = {
        v: 1,
        type: 'session.create',
        sessionId,
        commandId,
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        traceparent,
        customerId: await customerOfSession(customerRows, customer_id, { sessionId, commandId, guestId }),
        agentId: agent.id,
        title: title ?? null,
        mode,
        metadata,
        labels: [...new Set(labels)],
        allowGreeting: request.query.allow_greeting ?? allow_greeting,
        bundleHash: agent.bundleHash,
        ...(eventWebhookUrl != null && { eventWebhookUrl }),
      };
      const outcome = await commandReplies.send(command, waits.replyMs);
      if (outcome === null) throw new SwitchyardError('service.no_answer', 'the session could not be created in time');
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
      if (!(await keepsCustomer(customerRows, customer_id, guestId, () => isKnownSession(sessionId)))) {
        await deleteSession(deps, sessionId, traceparent);
        throw noCustomer();
      }
      // Without a key only our own retries repeat a command: one request to the caller.
      return reply.code(outcome.repeat && key !== null ? 200 : 201).send(outcome.reply.value.session);
    });

    app.get('/sessions/:session_id', { schema: { params } }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const record = await sessionLog.record(sessionId);
      if (record !== null) return reply.type('application/json; charset=utf-8').send(record);
      const awaited = await sessionLog.awaited(sessionId);
      if (awaited === null) throw noSuchSession();
      return awaitedRecord(sessionId, agent.id, awaited);
    });

    app.delete('/sessions/:session_id', { schema: { params }, config: { appendsCommand: true, startsNoCall: true } }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      const key = idempotencyKeyOf(request.headers);
      // Without a key a new id per request: the owner distinguishes the first delete (204) from later ones (404).
      const commandId = commandIdOf(sessionId, 'delete', key);
      // A command for an unknown session would leave a useless processed command.
      if ((await isKnownSession(sessionId)) === false) {
        const first = key === null ? null : await processedCommands.read(sessionId, commandId);
        if (first?.ok !== true) throw noSuchSession();
        return reply.code(204).send();
      }
      const command: CommandOf<'session.delete'> = {
        v: 1,
        type: 'session.delete',
        sessionId,
        commandId,
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        traceparent: traceContextOf(contextOfRequest(request)).traceparent,
      };
      const outcome = await commandReplies.send(command, waits.replyMs);
      if (outcome === null) throw new SwitchyardError('service.no_answer', 'the session could not be deleted in time');
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
      return reply.code(204).send();
    });
  };
}

/** As the run's first step will store it. */
function awaitedRecord(id: string, agentId: string, { customerId, createdAt }: AwaitedSession): SessionRecord {
  return sessionOfRun({ id, customerId, agentId, at: createdAt.toISOString() });
}
