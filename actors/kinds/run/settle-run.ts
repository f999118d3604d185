import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { RunFacts } from '../../inputs/actor-inputs.ts';
import type { RunProgress } from '../../runtime/apply/commit-rows.ts';
import { callBack } from '../delivery/call-back.ts';
import type { Plan } from '../plan.ts';
import type { RunActions } from './types.ts';

/** Writes a run's end, and its callback. */
export function settleRun(plan: Plan, facts: RunFacts, end: RunActions['settle'], startedAtMs: number): void {
  const { id, routineId, bundleHash, traceId, traceparent: parent } = facts;
  const progress: RunProgress = {
    partition: plan.partition,
    id,
    state: end.state,
    output: end.state === 'succeeded' ? end.output : null,
    error: end.state === 'failed' ? withDetails(end.error, facts) : null,
    startedAtMs,
    completedAtMs: plan.atMs,
  };
  const outcome = progress.error?.code ?? progress.state;
  const durationMs = plan.atMs - startedAtMs;
  const count = (metrics: Metrics) => {
    metrics.add('runs', { outcome });
    metrics.observe('runSeconds', {}, durationMs / 1_000);
  };
  plan.note('a run ended', { run_id: id, trace_id: traceId }, { outcome, durationMs, count });
  plan.noteEnd({ kind: 'run', id, routineId, bundleHash, parent, startedAtMs, outcome });
  plan.runs.push(progress);
  if (facts.callbackUrl !== null) callBack(plan, facts, facts.callbackUrl, progress);
}

/** Errors without details get the trace id or the time limit. */
function withDetails(error: RunError, { traceId, timeoutMs }: RunFacts): RunError {
  if (Object.keys(error.details).length > 0) return error;
  return { ...error, details: error.code === 'timeout' ? { timeout_seconds: timeoutMs / 1_000 } : { trace_id: traceId } };
}
