import { selectorsOf } from '../../engine/run-tools.ts';
import type { AutonomousRoutine, RunFacts } from '../../inputs/actor-inputs.ts';
import type { Plan } from '../plan.ts';

/** @throws TypeError for a run without a row */
export function factsOf({ inputs }: Plan, runId: string): RunFacts {
  const facts = inputs.runOf(runId);
  if (facts === null) throw new TypeError(`there is no row of run ${runId}`);
  return facts;
}

export function serversOf(routine: AutonomousRoutine | null): string[] {
  const selectors = routine === null ? [] : selectorsOf(routine);
  return [...new Set(selectors.map((selector) => selector.slice(0, selector.indexOf(':'))))];
}
