import type { RunError } from '#shared/contracts/agent/run-error.ts';
import type { Plan } from '../plan.ts';
import { runActor } from '../run/actor.ts';
import { failUnstarted } from '../run/lifecycle.ts';
import { turnActor } from '../turn/actor.ts';
import { sessionActor } from './actor.ts';

const unstartable: RunError = { code: 'engine_error', message: 'the run could not be started', details: {} };

/** Fails the turn or run in progress after one of its commands could not be applied, and a run that could not be started. */
export function failCommand(plan: Plan): void {
  const run = plan.stateOf(runActor);
  if (plan.stateOf(turnActor) !== null) plan.send(sessionActor, { type: 'turn.result', event: { type: 'turn.poisoned' } });
  else if (run !== null) plan.send(sessionActor, { type: 'run.result', event: { type: 'run.poisoned' } });
  const { command, inputs } = plan;
  if (command.type !== 'run.start' || run?.runId === command.runId || inputs.isSettled(command.runId)) return;
  failUnstarted(plan, [command.runId], unstartable);
}
