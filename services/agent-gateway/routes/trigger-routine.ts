import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { type RunEnvelope, type TriggerRequest, triggerRequest } from '#shared/contracts/agent/run.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { traceId as newTraceId, ulid } from '#shared/ids.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { traceContextOf, traceIdIn } from '#shared/telemetry/trace-context.ts';
import { noTracing, type Span, type Tracing } from '#shared/telemetry/tracing.ts';
import { within } from '#shared/within.ts';
import { commandSpan } from '../command-span.ts';
import type { SessionLog } from '../feed/session-log.ts';
import type { Waits } from '../limits.ts';
import type { TriggerableRoutine } from '../routines.ts';
import type { NewRun, RunRows } from '../run-rows.ts';
import { isSessionId } from './session-id.ts';

export interface TriggerRoutineDeps {
  routines: ReadonlyMap<string, TriggerableRoutine>;
  /** @throws `outbound.refused` for an address that results may not be posted to */
  checkCallbackUrl(url: string, hostAllowlist: readonly string[] | null): void;
  runRows: RunRows;
  sessionLog: SessionLog;
  bus: Bus;
  maxTimeoutMs: number;
  bundleHash: string;
  waits: Waits;
  log: Log;
  tracing?: Tracing;
  /** The input field that names a run's trace; null: none. */
  traceNameField?: string | null;
}

/**
 * POST /routines/:routine_id/trigger: 202 with the run once its row is stored, 409 with the earlier one when the idempotency key repeats. Order of refusals:
 * routine (404), form of the body (400), key (409), callback address (400), input (400), session (500).
 */
export function triggerRoutine(deps: TriggerRoutineDeps): FastifyPluginAsyncZod {
  const { routines, runRows } = deps;
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
      const { idempotency_key: givenKey } = request.body;
      const key = givenKey == null ? null : storedKeyOf(givenKey);
      const prior = key === null ? null : await runRows.byKey(routine.id, key);
      // First: a repeat gets the first reply, even if its callback address would be refused now.
      if (prior !== null) return conflict(reply, prior);
      checkTrigger(deps, routine, request.body);

      const { run, publishing } = await newRun(deps, routine, { request: request.body, key, parent: traceContextOf(contextOfRequest(request)).traceparent });
      const createdAt = await runRows.accept(run);
      // A repeat publishes nothing: its span never ends and is not exported.
      if (createdAt === null) return conflict(reply, await winnerOf(runRows, run));
      deps.log.info({ run_id: run.id, session_id: run.sessionId, trace_id: run.traceId }, 'a run was accepted');
      await publishStart(deps, run, createdAt, publishing);
      return reply.code(202).send(envelopeOf(run, createdAt));
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
  const { path, schemaPath, keyword, message } = violation;
  const details = { path, schema_path: schemaPath, keyword };
  throw new SwitchyardError('request.invalid', `the input does not fit the routine's input_schema: ${path === '' ? 'it' : path} ${message}`, { details });
}

interface Triggered {
  request: TriggerRequest;
  /** As stored; null when the caller gave none. */
  key: string | null;
  parent: string;
}

async function newRun(deps: TriggerRoutineDeps, routine: TriggerableRoutine, { request, key, parent }: Triggered): Promise<{ run: NewRun; publishing: Span }> {
  const { sessionLog } = deps;
  const runUlid = ulid();
  const id = `run_${runUlid}`;
  const requested = request.session_id ?? null;
  // An ephemeral session's id derives from the run's, so creating it is idempotent.
  const session =
    requested === null ? { id: `ses_${runUlid}`, customerId: `cus_${runUlid}` } : { id: requested, customerId: await customerOf(sessionLog, requested) };
  // Before the row: an owner that finds the row first continues below the same span.
  const publishing = publishSpan(deps, { type: 'run.start', commandId: id, sessionId: session.id }, parent, request.input);
  const run: NewRun = {
    id,
    partition: partitionOf(session.id),
    sessionId: session.id,
    customerId: session.customerId,
    ephemeral: requested === null,
    routineId: routine.id,
    // The run's own id is unique among keys.
    idempotencyKey: key ?? id,
    bundleHash: deps.bundleHash,
    input: request.input,
    metadata: request.metadata ?? null,
    callbackUrl: request.callback_url,
    traceId: traceIdIn(publishing.traceparent) ?? '',
    traceparent: publishing.traceparent,
    timeoutMs: routine.timeoutMs,
    maxTimeoutMs: deps.maxTimeoutMs,
  };
  return { run, publishing };
}

/**
 * A run with an input that names its trace gets a new trace with this span as its root, linked to the request; any other is a child of the request. The name
 * is no id: runs that share it are separate traces, found together by it.
 */
function publishSpan(deps: TriggerRoutineDeps, command: Parameters<typeof commandSpan>[1], parent: string, input: Record<string, unknown>): Span {
  const { tracing = noTracing, traceNameField = null } = deps;
  const given = traceNameField === null ? undefined : input[traceNameField];
  const name = typeof given === 'number' ? String(given) : given;
  if (typeof name !== 'string' || name === '') return commandSpan(tracing, command, { parent });
  return commandSpan(tracing, command, { parent: null, traceId: newTraceId(), links: [parent] }, name);
}

const customerFace = z.object({ customer_id: z.string() });

/** @throws `run.session_unusable` for an unknown session: 500 by contract */
async function customerOf(sessionLog: SessionLog, sessionId: string): Promise<string> {
  const record = isSessionId(sessionId) ? await sessionLog.record(sessionId) : null;
  if (record === null) throw new SwitchyardError('run.session_unusable', 'there is no session with this session_id');
  return customerFace.parse(JSON.parse(record)).customer_id;
}

/** Rows are kept for weeks, so it exists unless a clock was far off. */
async function winnerOf(runRows: RunRows, { routineId, idempotencyKey }: NewRun): Promise<RunEnvelope> {
  const winner = await runRows.byKey(routineId, idempotencyKey);
  if (winner === null) throw new SwitchyardError('service.no_answer', 'the run with this idempotency_key has just been deleted; trigger it again');
  return winner;
}

function conflict(reply: FastifyReply, prior: RunEnvelope): FastifyReply {
  return reply.code(409).send({ error: 'the routine was triggered with this idempotency_key before', code: 'conflict', ...prior });
}

/** The row is the acceptance: if the append fails, the owner finds the row; if both arrive, the run starts once, since its id is the command's. */
async function publishStart({ bus, waits, log }: TriggerRoutineDeps, run: NewRun, createdAt: Date, span: Span): Promise<void> {
  const { id, partition, sessionId, traceparent } = run;
  const sentAtMs = createdAt.getTime();
  const command: CommandOf<'run.start'> = { v: 1, type: 'run.start', sessionId, commandId: id, sentAtMs, answerTo: null, traceparent, runId: id };
  try {
    const stored = await within(waits.publishMs, bus.commands.append(partition, id, JSON.stringify(command)), () => null);
    span.end(stored === null ? 'service.no_answer' : null);
    if (stored === null) log.warn({ run_id: id }, 'the start command of a run is not stored yet; its owner will find the row');
  } catch (error) {
    span.end(failureOf(error).code);
    log.warn({ err: error, run_id: id }, 'the start command of a run could not be stored; its owner will find the row');
  }
}

function envelopeOf({ id, routineId, sessionId }: NewRun, createdAt: Date): RunEnvelope {
  return { run_id: id, routine_id: routineId, status: 'accepted', session_id: sessionId, created_at: createdAt.toISOString() };
}

/** Hashed, since it may be any text; prefixed, to differ from run ids and keys of other kinds. */
function storedKeyOf(key: string): string {
  return `key:${createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
