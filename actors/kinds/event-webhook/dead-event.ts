import { type DeadEvent, deadEventId, replayOf } from '#bus/messages/event-delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { DeadLetter } from '../../runtime/apply/commit-rows.ts';
import type { Plan } from '../plan.ts';
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

/** A replay is one attempt, outside the order of the rounds. When it fails, its dead letter is there again. */
export function keepAgain(plan: Plan, { callId, outcome, nextOffset: offset, reason }: CommandOf<'event-webhook.reported'>): void {
  if (outcome === 'posted' || !callId.startsWith(replayOf(deadEventId(plan.sessionId, offset), ''))) return;
  plan.deadLetters.push(letterOf(plan, { offset, reason }));
}
