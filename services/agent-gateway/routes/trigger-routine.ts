import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type RunEnvelope, type TriggerRequest, triggerRequest } from '#shared/contracts/agent/run.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { RunAcceptance, RunRequest } from '../accept-runs.ts';
import type { SessionLog } from '../feed/session-log.ts';
import { inputViolation } from '../input-violation.ts';
import type { TriggerableRoutine } from '../routines.ts';
import type { RunRows } from '../run-rows.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';
import { isSessionId } from './session-id.ts';

export interface TriggerRoutineDeps {
  routines: ReadonlyMap<string, TriggerableRoutine>;
  /** @throws `outbound.refused` for an address that results may not be posted to */
  checkCallbackUrl(url: string, hostAllowlist: readonly string[] | null): void;
  runRows: RunRows;
  acceptance: RunAcceptance;
  sessionLog: SessionLog;
}

/**
 * POST /routines/:routine_id/trigger: 202 with the run once its row is stored, 409 with the earlier one when the idempotency key repeats. Order of refusals:
 * routine (404), form of the body and of the key (400), key (409), callback address (400), input (400), session (500).
 */
export function triggerRoutine(deps: TriggerRoutineDeps): FastifyPluginAsyncZod {
  const { routines, runRows, acceptance, sessionLog } = deps;
  const params = z.object({ routine_id: z.string() });
  const routineOf = (routineId: string): TriggerableRoutine => {
    const routine = routines.get(routineId);
    if (routine === undefined) throw new SwitchyardError('routine.not_found', 'there is no autonomous routine with this id');
    return routine;
  };

  return async (app) => {
    const options = {
      schema: { params, body: triggerRequest },
      config: { appendsCommand: true },
      // Before the body is read: an unknown routine takes precedence.
      onRequest: async ({ params: given }: { params: unknown }) => {
        routineOf(params.parse(given).routine_id);
      },
    };
    app.post('/routines/:routine_id/trigger', options, async (request, reply) => {
      const routine = routineOf(request.params.routine_id);
      const { input, metadata, callback_url: callbackUrl, session_id: sessionId, idempotency_key: keyOfBody } = request.body;
      const givenKey = idempotencyKeyOf(request.headers) ?? keyOfBody ?? null;
      const key = givenKey === null ? null : storedKeyOf(givenKey);
      const prior = key === null ? null : await runRows.byKey(routine.id, key);
      // First: a repeat gets the first reply, even if its callback address would be refused now.
      if (prior !== null) return conflict(reply, prior);
      checkTrigger(deps, routine, request.body);

      const wanted: RunRequest = {
        routine,
        input,
        metadata: metadata ?? null,
        callbackUrl,
        idempotencyKey: key,
        session: sessionId == null ? null : { id: sessionId, customerId: await customerOf(sessionLog, sessionId) },
        parent: traceContextOf(contextOfRequest(request)).traceparent,
      };
      const run = await acceptance.accept(wanted);
      // Without a key it is new.
      return run === null ? conflict(reply, await runRows.winnerOf(routine.id, key ?? '')) : reply.code(202).send(run);
    });
  };
}

function checkTrigger({ checkCallbackUrl }: TriggerRoutineDeps, routine: TriggerableRoutine, { callback_url, input }: TriggerRequest): void {
  try {
    checkCallbackUrl(callback_url, routine.callbackUrlAllowlist);
  } catch (error) {
    if (!(error instanceof SwitchyardError) || error.code !== 'outbound.refused') throw error;
    const details = { ...error.details, path: '/callback_url' };
    const where = error.details.reason === 'host_not_allowed' ? `, the callback_url_allowlist of the routine "${routine.id}"` : '';
    throw new SwitchyardError('outbound.refused', `callback_url is not allowed: ${error.message}${where}`, { cause: error, details });
  }
  const violation = routine.violationOf(input);
  if (violation === null) return;
  const { path, schemaPath, keyword } = violation;
  const details = { path, schema_path: schemaPath, keyword };
  throw new SwitchyardError('request.invalid', `the input does not fit the routine's input_schema: ${inputViolation(violation)}`, { details });
}

const customerFace = z.object({ customer_id: z.string() });

/** @throws `run.session_unusable` for an unknown session: 500 by contract */
async function customerOf(sessionLog: SessionLog, sessionId: string): Promise<string> {
  const record = isSessionId(sessionId) ? await sessionLog.record(sessionId) : null;
  if (record === null) throw new SwitchyardError('run.session_unusable', 'there is no session with this session_id');
  return customerFace.parse(JSON.parse(record)).customer_id;
}

function conflict(reply: FastifyReply, prior: RunEnvelope): FastifyReply {
  return reply.code(409).send({ error: 'the routine was triggered with this idempotency_key before', code: 'conflict', ...prior });
}

/** Hashed, since it may be any text; prefixed, to differ from run ids and keys of other kinds. */
function storedKeyOf(key: string): string {
  return `key:${createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
