import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { listRunsQuery, listStepsQuery } from '#shared/contracts/agent/run.ts';
import { invalidField } from '../plugins/error-reply.ts';
import type { RunPosition, RunRows } from '../run-rows.ts';
import type { RunStepRows } from '../run-step-rows.ts';
import { isRunId, noSuchRun } from './run-id.ts';

/**
 * The state of runs, for callers that a callback did not reach. GET /runs/:run_id: 200 with the run. GET /runs: 200 with `{items, has_more, next_cursor}`,
 * newest first. GET /runs/:run_id/steps: 200 with the same form of its model calls, tool calls and tool lists, oldest first: outcome and duration, no content.
 */
export function runs({ runRows, runStepRows }: { runRows: RunRows; runStepRows: RunStepRows }): FastifyPluginAsyncZod {
  const params = z.object({ run_id: z.string() });
  return async (app) => {
    app.get('/runs/:run_id', { schema: { params } }, async (request) => {
      const { run_id: runId } = request.params;
      const run = isRunId(runId) ? await runRows.byId(runId) : null;
      if (run === null) throw noSuchRun();
      return run;
    });

    app.get('/runs/:run_id/steps', { schema: { params, querystring: listStepsQuery } }, async (request) => {
      const { run_id: runId } = request.params;
      const { limit, cursor } = request.query;
      const page = isRunId(runId) ? await runStepRows.list(runId, Number(cursor ?? 0), limit) : null;
      if (page === null) throw noSuchRun();
      const { steps: items, next } = page;
      return { items, has_more: next !== null, next_cursor: next === null ? null : String(next) };
    });

    app.get('/runs', { schema: { querystring: listRunsQuery } }, async (request) => {
      const { routine_id, status, limit, cursor } = request.query;
      const after = cursor === undefined ? null : positionOf(cursor);
      const { runs: items, next } = await runRows.list({ routineId: routine_id ?? null, status: status ?? null }, after, limit);
      return { items, has_more: next !== null, next_cursor: next === null ? null : cursorOf(next) };
    });
  };
}

const CURSOR = /^(\d{1,16}) ([A-Za-z0-9_-]{1,128})$/;

function cursorOf({ createdAtMicros, runId }: RunPosition): string {
  return Buffer.from(`${createdAtMicros} ${runId}`, 'utf8').toString('base64url');
}

/** @throws `request.invalid` */
function positionOf(cursor: string): RunPosition {
  const [, createdAtMicros, runId] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString('utf8')) ?? [];
  if (createdAtMicros === undefined || runId === undefined) throw invalidField('/cursor', 'must be the next_cursor of an earlier page');
  return { createdAtMicros: Number(createdAtMicros), runId };
}
