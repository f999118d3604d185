import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RunError } from '#shared/contracts/agent/run-error.ts';
import { type SessionRecord, sessionOfRun } from '#shared/contracts/agent/session.ts';
import type { RunFacts } from '../../inputs/actor-inputs.ts';
import { deadlineKeyOf } from '../../tool-loop/effect-ids.ts';
import type { Plan } from '../plan.ts';
import { runActor } from './actor.ts';
import { factsOf, serversOf } from './facts-of.ts';
import { withinTime } from './failures.ts';
import { settleRun } from './settle-run.ts';
import type { RunInput } from './types.ts';

export function beginRun(plan: Plan, runId: string): void {
  const facts = factsOf(plan, runId);
  const { atMs } = plan;
  const { traceId, bundleHash, traceparent, routine, timeoutMs } = facts;
  const config = facts.bundle?.manifest.agent_config;
  plan.begin(runActor, { traceId, bundleHash, traceparent, startedAtMs: atMs, runId });
  const input: RunInput = {
    runId,
    atMs,
    deadlineAtMs: Math.min(atMs + timeoutMs, facts.expiresAtMs),
    timeoutMs,
    maxIterations: routine?.max_iterations ?? config?.runtime.max_engine_iterations ?? 1,
    servers: serversOf(routine),
    hasFallbackModel: (config?.llms.fallback.length ?? 0) > 0,
    refusal: refusalOf(facts, atMs),
  };
  plan.start(runActor, input);
}

/** A waiting run settles in time, whatever happens to its session. */
export function awaitRun(plan: Plan, runId: string): void {
  plan.arm(deadlineKeyOf(runId), factsOf(plan, runId).expiresAtMs, { type: 'run.deadline', ...actorFields(runId) });
}

/** For runs that never began, time counts from their acceptance. */
export function failUnstarted(plan: Plan, runIds: readonly string[], error: RunError): void {
  for (const runId of runIds) {
    const facts = plan.inputs.runOf(runId);
    if (facts === null) continue;
    plan.disarm(deadlineKeyOf(runId));
    const limits = { deadlineAtMs: facts.expiresAtMs, timeoutMs: facts.timeoutMs };
    settleRun(plan, facts, { state: 'failed', error: withinTime(error, limits, plan.atMs) }, facts.createdAtMs);
  }
}

/** Record of the session that a run creates. */
export function recordFor(plan: Plan, runId: string): SessionRecord {
  const { sessionId: id, customerId, bundle } = factsOf(plan, runId);
  return sessionOfRun({ id, customerId, agentId: bundle?.manifest.id ?? '', at: plan.at });
}

/** Why a run can't begin; null when it can. */
function refusalOf(facts: RunFacts, atMs: number): RunError | null {
  if (atMs >= facts.expiresAtMs) return { code: 'timeout', message: 'the run waited longer than a run may take', details: {} };
  if (facts.bundle === null) return { code: 'engine_error', message: 'the configuration that the run was accepted under can not be read', details: {} };
  if (facts.routine === null) return { code: 'engine_error', message: 'the configuration has no such routine', details: {} };
  const violation = facts.inputViolation;
  if (violation === null) return null;
  const { path, schemaPath, keyword, message } = violation;
  return { code: 'input_validation_failed', message: `the input ${message}`, details: { path, schema_path: schemaPath, keyword } };
}
