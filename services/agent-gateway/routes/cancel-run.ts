import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { CommandReplies } from '../command-replies.ts';
import type { Waits } from '../limits.ts';
import type { RunRows } from '../run-rows.ts';
import { isRunId, noSuchRun } from './run-id.ts';

export interface CancelRunDeps {
  commandReplies: CommandReplies;
  runRows: RunRows;
  clock: Clock;
  waits: Waits;
}

/**
 * POST /runs/:run_id/cancel: 202 with the run, once its owner has cancelled it, and again when repeated; 409 for a run that settled otherwise. The run fails as
 * `engine_error`. While it still reads `running`, a tool call that can not be taken back settles.
 */
export function cancelRun({ commandReplies, runRows, clock, waits }: CancelRunDeps): FastifyPluginAsyncZod {
  const params = z.object({ run_id: z.string() });
  return async (app) => {
    app.post('/runs/:run_id/cancel', { schema: { params }, config: { appendsCommand: true, startsNoCall: true } }, async (request, reply) => {
      const { run_id: runId } = request.params;
      const run = isRunId(runId) ? await runRows.byId(runId) : null;
      if (run === null) throw noSuchRun();
      const command: CommandOf<'run.cancel'> = {
        v: COMMAND_VERSION,
        type: 'run.cancel',
        sessionId: run.session_id,
        // One per run: every repeat gets the first reply.
        commandId: `${runId}-cancel`,
        sentAtMs: clock.nowMs(),
        answerTo: commandReplies.gatewayId,
        traceparent: traceContextOf(contextOfRequest(request)).traceparent,
        runId,
      };
      const outcome = await commandReplies.send(command, waits.replyMs);
      if (outcome === null) throw new SwitchyardError('service.no_answer', 'the run could not be cancelled in time; send it again');
      if (!outcome.reply.ok) throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
      return reply.code(202).send((await runRows.byId(runId)) ?? run);
    });
  };
}
