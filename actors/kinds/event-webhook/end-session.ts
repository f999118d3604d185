import type { Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { eventWebhookActor } from './actor.ts';
import { isBehind } from './address.ts';

/** Whether events of the session wait to be posted, or are being posted. */
export function awaitsEvents(plan: Plan): boolean {
  const state = plan.stateOf(eventWebhookActor);
  if (state === null) return false;
  return state.value !== 'idle' || isBehind(state.context, { head: plan.lastOffset + 1, deployment: deploymentOf(plan) });
}

/** Once a run without callback, or a callback, is settled: ends an ephemeral session without open deliveries, at once or when its last event is settled. */
export function endSession(plan: Plan): void {
  if (awaitsEvents(plan)) plan.send(eventWebhookActor, { type: 'session.ended' });
  else plan.send(sessionActor, { type: 'deliveries.settled' });
}

/** The deployment's address; null: none. */
export function deploymentOf({ inputs }: Plan) {
  return inputs.eventWebhooks?.deployment ?? null;
}
