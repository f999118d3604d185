import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { patchSessionRequest } from '#shared/contracts/agent/session.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { CommandReplies } from '../command-replies.ts';
import type { Waits } from '../limits.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import { commandIdOf, idempotencyKeyOf } from './idempotency-key.ts';
import { checkedSessionId } from './session-id.ts';

export interface PatchSessionDeps {
  commandReplies: CommandReplies;
  clock: Clock;
  waits: Waits;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

type Changes = Pick<CommandOf<'session.patch'>, 'title' | 'mode' | 'setMetadata' | 'unsetMetadata' | 'upsertLabels' | 'removeLabels' | 'clientOffset'>;

/** PATCH /sessions/:session_id: 200 with the changed record; the same record again when the `Idempotency-Key` repeats. */
export function patchSession({ commandReplies, clock, waits, isKnownSession }: PatchSessionDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  return async (app) => {
    app.patch(
      '/sessions/:session_id',
      { schema: { params, body: patchSessionRequest }, config: { appendsCommand: true, startsNoCall: true } },
      async (request, reply) => {
        const sessionId = checkedSessionId(request.params.session_id);
        const key = idempotencyKeyOf(request.headers);
        // A command for an unknown session would leave a useless processed command.
        if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
        const command: CommandOf<'session.patch'> = {
          v: 1,
          type: 'session.patch',
          sessionId,
          commandId: commandIdOf(sessionId, 'patch', key),
          sentAtMs: clock.nowMs(),
          answerTo: commandReplies.gatewayId,
          traceparent: traceContextOf(contextOfRequest(request)).traceparent,
          ...changesIn(request.body),
        };
        const outcome = await commandReplies.send(command, waits.replyMs);
        if (outcome === null)
          throw new SwitchyardError('service.no_answer', 'the session could not be changed in time; send it again with the same idempotency key');
        // A stored reply outlives the session: processed commands are kept while a redelivery is possible.
        if (outcome.repeat && (await isKnownSession(sessionId)) === false) throw noSuchSession();
        if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
        return reply.code(200).send(outcome.reply.value.session);
      },
    );
  };
}

function changesIn({ title, mode, metadata, labels, consumption_offsets: offsets }: z.infer<typeof patchSessionRequest>): Changes {
  return {
    ...(title === undefined ? {} : { title }),
    ...(mode === undefined ? {} : { mode }),
    setMetadata: metadata?.set ?? {},
    unsetMetadata: metadata?.unset ?? [],
    upsertLabels: labels?.upsert ?? [],
    removeLabels: labels?.remove ?? [],
    ...(offsets?.client === undefined ? {} : { clientOffset: offsets.client }),
  };
}
