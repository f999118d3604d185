import { type CommandOf, checkedEventOf, checkIdOf, type ModerationMode, type ResultType, type SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ModerationScope } from '../../effects/moderation.ts';
import { effects } from '../../effects/registry.ts';
import { settledMark } from '../../engine/moderation/moderation-mark.ts';
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
import { sessionActor } from './actor.ts';
import { deletedEvents, patchedEvent } from './log-changes.ts';
import { patchProblem } from './patch-record.ts';
import { postedEvent } from './posted-event.ts';
import { newTurnId } from './turn-id.ts';
import type { MessageCheck, PostedEvent, SessionEvent } from './types.ts';

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
    case 'client-event.post': {
      const post = postedEvent(command);
      return {
        type: 'event.post',
        post: withLikeliest(plan, post),
        atMs: plan.atMs,
        coalesceMs: inputs.coalesceMs,
        newTurnId: newTurnId(plan),
        turnMustSettle: mustSettleIn(plan),
        offset: plan.lastOffset + 1,
        check: post.moderation === null ? null : checkFor(`evt_${inputs.newId(plan.atMs)}`, post.moderation),
      };
    }
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
      if (!isAwaited(command)) return null;
      return checkedEventOf(command) === null ? resultOf(plan, command) : checkOf(plan, command);
  }
}

function checkFor(eventId: string, mode: ModerationMode): MessageCheck {
  return { callId: checkIdOf(eventId), eventId, mode };
}

/** The end of a message's check, also a late one. */
function checkOf(plan: Plan, command: Awaited): SessionEvent | null {
  const { event } = storedIn(plan);
  return effects.eventOf<ModerationScope, SessionEvent>(sessionActor.name, command, {
    settledBy(callId, verdict) {
      const mode = modeIn(event);
      const marked = event === null ? null : { ...event, metadata: { ...event.metadata, ...settledMark(mode, verdict) } };
      return {
        type: 'message.checked',
        callId,
        verdict: verdict.type,
        marked,
        likeliest: verdict.type === 'passed' ? likeliestOfWaiting(plan, event) : undefined,
      };
    },
  });
}

/** For a turn that waits to begin. */
function likeliestOfWaiting(plan: Plan, event: ConversationEvent | null): string | undefined {
  const wanted = plan.stateOf(sessionActor)?.context.wanted ?? null;
  return wanted === null || event === null ? undefined : likeliestFor(plan, wanted.bundleHash, event);
}

/** As it was stored with the message. */
function modeIn(event: ConversationEvent | null): unknown {
  const { moderation } = event?.metadata ?? {};
  return typeof moderation === 'object' && moderation !== null && 'mode' in moderation ? moderation.mode : null;
}

/** A turn that waits begins with another command, which does not have the message. */
function withLikeliest(plan: Plan, post: PostedEvent): PostedEvent {
  const isWaiting = mustSettleIn(plan) || plan.stateOf(runActor) !== null;
  // A message that is to be checked selects none before it has passed.
  const likeliest = post.turn === null || post.moderation !== null || !isWaiting ? undefined : likeliestFor(plan, post.turn.bundleHash, post.content);
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
