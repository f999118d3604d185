import type { CommandReply } from '#bus/messages/session.ts';
import { CommandPlan, type PlanScope } from './command-plan.ts';
import type { TransitionInputs } from './transition-inputs.ts';

/**
 * Applies one command to a session and adds what follows to the commit's plan: events, effects, timers, states, reply. When a transition throws, the
 * commit's plan is unchanged.
 */
export function applyCommand<Inputs extends TransitionInputs>(scope: PlanScope<Inputs>): CommandReply | null {
  const { kinds, command, earlier } = scope;
  const plan = new CommandPlan(scope);
  for (const kind of kinds.values()) {
    if (kind.receives?.(command) !== true) continue;
    kind.receive?.(plan);
    break;
  }
  for (const kind of kinds.values()) kind.afterCommand?.(plan);
  earlier.merge(plan);
  return plan.reply;
}

/** Ends what is in progress after one of its commands could not be applied, so that nothing waits for ever. */
export function failActors<Inputs extends TransitionInputs>(scope: PlanScope<Inputs>): void {
  const plan = new CommandPlan(scope);
  for (const kind of scope.kinds.values()) kind.fail?.(plan);
  for (const kind of scope.kinds.values()) kind.afterCommand?.(plan);
  scope.earlier.merge(plan);
}
