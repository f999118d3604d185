import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { DELIVERY_DUE } from '../partitions/timers.ts';
import type { RunProgress } from './commit-plan.ts';
import type { RunFacts } from './transition-inputs.ts';
import type { UnitOfWork } from './unit-of-work.ts';

/** A later round is skipped, and its timer opens another. Longer than the queueing delay under load. */
const ROUND_MS = 120_000;
/** For a round begun just before its deadline. */
const ROUND_GRACE_MS = 30_000;
/** Doubled after each failure. */
const BACK_OFF_FIRST_MS = 1_000;
const BACK_OFF_LONGEST_MS = 60_000;
/** Fraction of the pause, up or down: spreads simultaneous failures. */
const JITTER = 0.2;
const SCHEMA_VERSION = 1;

type DeliveryCommand = CommandOf<'delivery.reported' | 'delivery.due'> | (CommandOf<'effect.overdue'> & { kind: 'delivery' });

/** They bypass the session's machine: deliveries go on in any state, and dead ones can be replayed after the session. */
export function isDeliveryCommand(command: SessionCommand): command is DeliveryCommand {
  return command.type === 'delivery.reported' || command.type === 'delivery.due' || (command.type === 'effect.overdue' && command.kind === 'delivery');
}

/**
 * @param wasSuperseded by an earlier commit, or an earlier command of this one
 * @returns whether the delivery is settled now
 */
export function settleDelivery(unit: UnitOfWork, command: DeliveryCommand, wasSuperseded: (effectId: string) => boolean): boolean {
  switch (command.type) {
    case 'delivery.reported':
      // Another round is open: this would start a second chain.
      if (command.outcome === 'failed' && wasSuperseded(command.callId)) return false;
      return settleReport(unit, command);
    case 'delivery.due':
      openRound(unit, command.deliveryId, command.traceparent);
      return false;
    case 'effect.overdue':
      // The item or its report was lost. Tries are counted in the row, so another round can't exceed their limit.
      closeRound(unit, command.callId, 'superseded');
      openRound(unit, command.actorId, command.traceparent);
      return false;
  }
}

function settleReport(unit: UnitOfWork, { callId, deliveryId, outcome, attempts, reason, retryAfterMs }: CommandOf<'delivery.reported'>): boolean {
  const { partition } = unit;
  closeRound(unit, callId, 'done');
  if (outcome === 'failed') {
    unit.arm(`${callId}${DELIVERY_DUE}`, unit.atMs + pauseMs(unit, attempts, retryAfterMs), { type: 'delivery.due', deliveryId });
    return false;
  }
  const state = outcome === 'delivered' ? 'delivered' : 'dead';
  unit.write((plan) => {
    // Two overlapping rounds both report the end: the first counts, with one dead letter.
    if (plan.deliveryStates.has(deliveryId)) return;
    plan.deliveryStates.set(deliveryId, { partition, state });
    if (state === 'dead') plan.deadLetters.push({ partition, id: deliveryId, source: 'delivery', reason: reason ?? 'it failed too often', body: '' });
  });
  return true;
}

function pauseMs(unit: UnitOfWork, attempts: number, retryAfterMs: number | null): number {
  const backOff = Math.min(BACK_OFF_FIRST_MS * 2 ** Math.max(0, attempts - 1), BACK_OFF_LONGEST_MS);
  const spread = backOff * (1 + JITTER * (2 * unit.transitionInputs.chance() - 1));
  return Math.round(Math.max(spread, retryAfterMs ?? 0));
}

/** Opens a round: at most one try by a worker. */
function openRound(unit: UnitOfWork, deliveryId: string, traceparent: string | null): void {
  const id = `${deliveryId}-${unit.transitionInputs.newId()}`;
  const deadlineAtMs = unit.atMs + ROUND_MS;
  unit.openEffect('delivery', id, { kind: 'delivery', deadlineAtMs }, { actorId: deliveryId, bundleHash: '', traceparent });
  unit.arm(overdueKeyOf(id), deadlineAtMs + ROUND_GRACE_MS, { type: 'effect.overdue', callId: id, ...actorFields(deliveryId), kind: 'delivery' });
}

function closeRound(unit: UnitOfWork, id: string, state: 'done' | 'superseded'): void {
  unit.closeEffect(id, state);
  unit.disarm(overdueKeyOf(id));
}

function overdueKeyOf(effectId: string): string {
  return `${effectId}-overdue`;
}

/** Fixes a settled run's callback and opens its first round. */
export function callBack(unit: UnitOfWork, facts: RunFacts, { state, output, error, startedAtMs, completedAtMs }: RunProgress): void {
  if (facts.callbackUrl === null) return;
  const { partition, atMs: createdAtMs } = unit;
  const idempotencyKey = unit.transitionInputs.newId();
  const payload = {
    schema_version: SCHEMA_VERSION,
    run_id: facts.id,
    routine_id: facts.routineId,
    status: state,
    output,
    error,
    session_id: facts.sessionId,
    trace_id: facts.traceId,
    started_at: new Date(startedAtMs ?? facts.createdAtMs).toISOString(),
    completed_at: new Date(completedAtMs ?? createdAtMs).toISOString(),
    metadata: facts.metadata ?? {},
    idempotency_key: idempotencyKey,
    origin_service: 'agent-server',
  };
  const deliveryId = `${facts.id}-callback`;
  const traceparent = contextBelow(facts.traceparent, facts.id);
  const row = {
    partition,
    id: deliveryId,
    sessionId: facts.sessionId,
    runId: facts.id,
    url: facts.callbackUrl,
    hostAllowlist: facts.routine?.callback_url_allowlist ?? null,
    bundleHash: facts.bundleHash,
    idempotencyKey,
    traceId: facts.traceId,
    traceparent,
    body: JSON.stringify(payload),
    createdAtMs,
  };
  unit.write((plan) => plan.deliveries.set(deliveryId, row));
  openRound(unit, deliveryId, traceparent);
}
