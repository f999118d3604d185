import { actorFields } from '#bus/messages/actor-fields.ts';
import { type DeadEvent, deadEventId, replayOf } from '#bus/messages/event-delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { DeadLetter } from '../../runtime/apply/commit-rows.ts';
import { overdueKeyOf, ROUND_GRACE_MS, ROUND_MS } from '../delivery/rounds.ts';
import { openEffect, type Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { eventWebhookActor } from './actor.ts';
import { addressOf } from './address.ts';
import { deploymentOf } from './end-session.ts';
import type { EventWebhookActions } from './types.ts';

/** Names the event without its content, which goes with the session. */
export function letterOf(plan: Plan, { offset, reason }: EventWebhookActions['giveUp']): DeadLetter {
  const { partition, sessionId } = plan;
  const context = plan.stateOf(eventWebhookActor)?.context ?? null;
  const url = context === null ? null : (addressOf(context, deploymentOf(plan))?.url ?? null);
  const body: DeadEvent = { v: 1, sessionId, offset, url: url ?? '', bundleHash: context?.bundleHash ?? '' };
  return { partition, id: deadEventId(sessionId, offset), source: 'event', reason: reason ?? 'it failed too often', body: JSON.stringify(body) };
}

/** Posts a dead event again: one attempt, outside the order of the rounds, with a timer behind it in place of the machine's. */
export function replayEvent(plan: Plan, { offset, url, bundleHash, traceparent }: CommandOf<'event-webhook.replay'>): void {
  const { sessionId, atMs } = plan;
  if (!hasEvents(plan)) return;
  const id = replayOf(deadEventId(sessionId, offset), plan.inputs.newId(atMs));
  const round: EventWebhookActions['effect'] = {
    ...{ kind: 'event-delivery', id, url, deadlineAtMs: atMs + ROUND_MS },
    ...{ kinds: null, fromOffset: offset, toOffset: offset + 1, attempts: 0, waitingSinceMs: null },
  };
  openEffect(plan, eventWebhookActor.name, round, { id, actorId: sessionId, bundleHash, traceparent });
  plan.arm(overdueKeyOf(id), round.deadlineAtMs + ROUND_GRACE_MS, { type: 'effect.overdue', callId: id, kind: 'event-delivery', ...actorFields(sessionId) });
}

/** The end of a replay: when it has failed, or is overdue, its dead letter is there again, unless the session was deleted meanwhile. */
export function settleReplay(plan: Plan, command: CommandOf<'event-webhook.reported' | 'effect.overdue'>): void {
  const { callId } = command;
  const offset = replayedOffset(plan.sessionId, callId);
  if (offset === null) return;
  const isReported = command.type === 'event-webhook.reported';
  plan.closeEffect(callId, isReported ? 'done' : 'superseded');
  plan.disarm(overdueKeyOf(callId));
  if ((isReported && command.outcome === 'posted') || !hasEvents(plan)) return;
  plan.deadLetters.push(letterOf(plan, { offset, reason: isReported ? command.reason : 'its replay was not reported' }));
}

/** Those of a deleted session are gone. */
function hasEvents(plan: Plan): boolean {
  return plan.record !== null && plan.stateOf(sessionActor)?.value !== 'deleted';
}

/** Null: the effect is no replay. */
function replayedOffset(sessionId: string, callId: string): number | null {
  const [, offset] = callId.startsWith(`${sessionId}-`) ? (/^event-(\d+)-replay-/.exec(callId.slice(sessionId.length + 1)) ?? []) : [];
  return offset === undefined ? null : Number(offset);
}
