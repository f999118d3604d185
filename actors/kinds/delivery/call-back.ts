import { contextBelow } from '#shared/telemetry/trace-context.ts';
import type { RunFacts } from '../../inputs/actor-inputs.ts';
import type { RunProgress } from '../../runtime/apply/commit-rows.ts';
import { instant } from '../../runtime/apply/instant.ts';
import type { Plan } from '../plan.ts';
import { deliveryActor } from './actor.ts';

const SCHEMA_VERSION = 1;

/** Fixes a settled run's callback and opens its first round. */
export function callBack(plan: Plan, facts: RunFacts, url: string, { state, output, error, startedAtMs, completedAtMs }: RunProgress): void {
  const { partition, atMs } = plan;
  const { id: runId, sessionId, bundleHash, traceId } = facts;
  const idempotencyKey = plan.inputs.newId(atMs);
  const payload = {
    schema_version: SCHEMA_VERSION,
    run_id: runId,
    routine_id: facts.routineId,
    status: state,
    output,
    error,
    session_id: sessionId,
    trace_id: traceId,
    started_at: instant(startedAtMs ?? facts.createdAtMs),
    completed_at: instant(completedAtMs ?? atMs),
    metadata: facts.metadata ?? {},
    idempotency_key: idempotencyKey,
    origin_service: 'agent-server',
  };
  const deliveryId = `${runId}-callback`;
  const traceparent = contextBelow(facts.traceparent, runId);
  plan.deliveries.push({
    partition,
    id: deliveryId,
    sessionId,
    runId,
    url,
    hostAllowlist: facts.routine?.callback_url_allowlist ?? null,
    bundleHash,
    idempotencyKey,
    traceId,
    traceparent,
    body: JSON.stringify(payload),
    createdAtMs: atMs,
  });
  const opening = { value: 'opening' as const, context: { deliveryId, traceparent, roundId: null } };
  plan.sendTo(deliveryActor, opening, { type: 'delivery.opened', atMs, nextRoundId: `${deliveryId}-${plan.inputs.newId(atMs)}` });
}
