import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RunCallOutcome } from '#shared/contracts/agent/run.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import type { StepMessage } from '../../tool-loop/types.ts';
import type { ActorKind, ActorTransition } from '../actor-kind.ts';
import { endSession } from '../event-webhook/end-session.ts';
import { type Handlers, openEffect, type Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { waitingTurnId } from '../session/turn-id.ts';
import { type RunState, runActor } from './actor.ts';
import { outcomeOf, superseded } from './call-outcome.ts';
import { factsOf } from './facts-of.ts';
import { RUN_MACHINE_VERSION, runMachine } from './machine.ts';
import { settleRun } from './settle-run.ts';
import { toolEntries } from './tool-entries.ts';
import type { RunActions, RunContext, RunEvent, RunResult } from './types.ts';

const handlers: Handlers<RunActions> = {
  started: (plan) => {
    const { runId: id, traceId, startedAtMs } = stateOf(plan);
    plan.note('a run began', { run_id: id, trace_id: traceId });
    plan.runs.push({ partition: plan.partition, id, state: 'running', output: null, error: null, startedAtMs, completedAtMs: null });
  },
  fact: (plan, { content, metadata }) => {
    plan.append(content, { source: 'ai_agent', metadata, traceId: stateOf(plan).traceId, id: null });
  },
  stage: (plan, { message }) => {
    const { partition, sessionId } = plan;
    const { runId } = stateOf(plan);
    plan.steps.push({ partition, sessionId, runId, seq: nextStep(plan, runId), message });
  },
  toolEvent: (plan, { calls }) => {
    const { runId, traceId } = stateOf(plan);
    const staged = new Map(plan.inputs.stagedOf(runId));
    for (const step of [...plan.earlier.steps, ...plan.steps]) if (step.runId === runId) staged.set(step.seq, step.message as StepMessage);
    plan.append({ kind: 'tool', tool_calls: toolEntries(calls, staged) }, { source: 'ai_agent', metadata: {}, traceId, id: null });
  },
  effect: (plan, request) => {
    const { runId: actorId, bundleHash, traceparent } = stateOf(plan);
    openEffect(plan, runActor.name, request, { id: request.id, actorId, bundleHash, traceparent: contextBelow(traceparent, actorId) });
  },
  supersede: (plan, { id }) => {
    plan.closeEffect(id, 'superseded');
    recordCall(plan, stateOf(plan).runId, id, superseded);
  },
  timer: (plan, { key, atMs, command }) => {
    const actor = actorFields(stateOf(plan).runId);
    plan.arm(key, atMs, command === 'run.deadline' ? { type: 'run.deadline', ...actor } : { ...command, ...actor });
  },
  disarm: (plan, { key }) => plan.disarm(key),
  settle: (plan, outcome) => {
    const { runId, startedAtMs } = stateOf(plan);
    settleRun(plan, factsOf(plan, runId), outcome, startedAtMs);
  },
};

export const runKind: ActorKind<Plan> = {
  name: runActor.name,
  machine: runMachine,
  snapshot: { version: RUN_MACHINE_VERSION, place: 1, migrations: new Map() },
  initial: null,
  handlers,
  afterTransition,
};

function afterTransition(plan: Plan, { event, state, isDone, hasActions }: ActorTransition): void {
  const { runId } = state.context as RunContext;
  // A result with actions was an awaited one.
  if (event !== null && isResult(event as RunEvent) && hasActions) {
    const result = event as RunResult;
    plan.closeEffect(result.callId, 'done');
    recordCall(plan, runId, result.callId, outcomeOf(result, plan.command));
  }
  if (!isDone) return;
  plan.end(runActor);
  plan.send(sessionActor, { type: 'run.settled', runId, nextTurnId: waitingTurnId(plan) });
  if (factsOf(plan, runId).callbackUrl === null) endSession(plan);
}

function isResult(event: RunEvent): boolean {
  return 'callId' in event;
}

function recordCall(plan: Plan, runId: string, effectId: string, outcome: RunCallOutcome): void {
  plan.runCalls.push({ partition: plan.partition, runId, effectId, outcome, endedAtMs: plan.atMs });
}

/** Number of the next message in the transcript. */
function nextStep(plan: Plan, runId: string): number {
  const last = plan.steps.findLast((step) => step.runId === runId);
  if (last !== undefined) return last.seq + 1;
  const before = plan.stateBefore(runActor);
  return before?.runId === runId ? before.context.stepCount : 0;
}

function stateOf(plan: Plan): RunState {
  const state = plan.stateOf(runActor);
  if (state === null) throw new TypeError('an action outside a run');
  return state;
}
