import type { CommandOf, ResultType, SessionCommand } from '#bus/messages/session.ts';
import { effects } from '../../effects/registry.ts';
import { awaitsEvents } from '../event-webhook/end-session.ts';
import type { Plan } from '../plan.ts';
import { runActor } from '../run/actor.ts';
import { scopeOf } from '../run/scope-of.ts';
import type { RunEventBody } from '../run/types.ts';
import { turnActor } from '../turn/actor.ts';
import { mustSettle } from '../turn/engine-states.ts';
import { likeliestFor } from '../turn/turn-memory.ts';
import { turnScopeOf } from '../turn/turn-scope.ts';
import type { TurnEventBody, TurnScope } from '../turn/types.ts';
import { deletedEvents, patchedEvent } from './log-changes.ts';
import { patchProblem } from './patch-record.ts';
import { postedEvent } from './posted-event.ts';
import type { PostedEvent, SessionEvent } from './types.ts';

/** The command as an event of the session; null when there is nothing to apply. */
export function eventOf(plan: Plan): SessionEvent | null {
  const { command, inputs, record } = plan;
  switch (command.type) {
    case 'session.create':
      return { type: command.type, command, greeting: inputs.greetingOf(command.sessionId) };
    case 'session.patch':
      return { type: command.type, command, problem: record === null ? null : patchProblem(record, command) };
    case 'event.patch':
      return patchedEvent(command, storedIn(plan).event);
    case 'events.delete':
      return deletedEvents(command, storedIn(plan).cut, plan.lastOffset + 1);
    case 'session.delete':
      // A sweep leaves a session whose events are still being posted.
      return command.unlessBusy === true && awaitsEvents(plan) ? null : { type: command.type, unlessBusy: command.unlessBusy ?? false };
    case 'message.post':
    case 'tool-event.post':
    case 'client-event.post':
      return {
        type: 'event.post',
        post: withLikeliest(plan, postedEvent(command)),
        atMs: plan.atMs,
        coalesceMs: inputs.coalesceMs,
        newTurnId: `trn_${inputs.newId()}`,
        turnMustSettle: mustSettleIn(plan),
      };
    case 'run.start': {
      const facts = inputs.runOf(command.runId);
      // A replayed dead letter starts a settled run under another command id, and a cancellation may come before the start.
      return facts === null || isSettled(plan, command.runId) ? null : { type: command.type, runId: command.runId, ephemeral: facts.ephemeral };
    }
    case 'run.deadline':
      return isSettled(plan, command.actorId) ? null : { type: 'run.expired', runId: command.actorId, event: command };
    case 'run.cancel': {
      const { runId } = command;
      return { type: command.type, runId, isSettled: isSettled(plan, runId), event: { type: 'run.cancel', claimed: claimedOf(plan, runId) } };
    }
    case 'turn.deadline':
      return { type: 'turn.result', event: command };
    default:
      return isAwaited(command) ? resultOf(plan, command) : null;
  }
}

/** A turn that waits begins with another command, which does not have the message. */
function withLikeliest(plan: Plan, post: PostedEvent): PostedEvent {
  const isWaiting = mustSettleIn(plan) || plan.stateOf(runActor) !== null;
  const likeliest = post.turn === null || !isWaiting ? undefined : likeliestFor(plan, post.turn.bundleHash, post.content);
  return post.turn === null || likeliest === undefined ? post : { ...post, turn: { ...post.turn, likeliest } };
}

/** @throws TypeError when it was not read, so that no change is lost silently */
function storedIn({ inputs: { stored } }: Plan) {
  if (stored === undefined) throw new TypeError('the stored events were not read');
  return stored;
}

type Awaited = CommandOf<ResultType | 'effect.overdue'>;

/** Every other command brings a result, or says that it is overdue. */
function isAwaited(command: SessionCommand): command is Awaited {
  return 'callId' in command;
}

/** For the run in progress if it is named, else for the turn. */
function resultOf(plan: Plan, command: Awaited): SessionEvent | null {
  const run = plan.stateOf(runActor);
  if (run !== null && 'actorId' in command && run.context.runId === command.actorId) {
    const event = effects.eventOf<ReturnType<typeof scopeOf>, RunEventBody>(runActor.name, command, scopeOf(plan, run.context));
    return event === null ? null : { type: 'run.result', event };
  }
  const event = effects.eventOf<TurnScope, TurnEventBody>(turnActor.name, command, turnScopeOf(plan));
  return event === null ? null : { type: 'turn.result', event };
}

function mustSettleIn(plan: Plan): boolean {
  const turn = plan.stateOf(turnActor);
  return turn !== null && mustSettle(turn.context);
}

/** Of the pending tool calls of the run, if it is in progress. */
function claimedOf(plan: Plan, runId: string): string[] {
  const run = plan.stateOf(runActor);
  if (run?.runId !== runId) return [];
  return run.context.pending.flatMap(({ callId }) => (plan.inputs.isClaimed(callId) ? [callId] : []));
}

/** By an earlier commit or an earlier command of this one. */
function isSettled({ earlier, inputs }: Plan, runId: string): boolean {
  return (earlier.runs.get(runId)?.completedAtMs ?? null) !== null || inputs.isSettled(runId);
}
