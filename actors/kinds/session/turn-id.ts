import type { Plan } from '../plan.ts';
import { sessionActor } from './actor.ts';

/** Contains the time at which the turn begins, by the session's log: agent gateways compare it with the times at which turns have ended. */
export function newTurnId({ inputs, atMs }: Plan): string {
  return `trn_${inputs.newId(atMs)}`;
}

/** For the turn that waits for the end of a run or of another turn; null: none waits. */
export function waitingTurnId(plan: Plan): string | null {
  const { wanted = null } = plan.stateOf(sessionActor)?.context ?? {};
  return wanted === null ? null : newTurnId(plan);
}
