import { ownValue } from '#shared/own-value.ts';
import { planRoutine, type RoutinePass, type RoutineStep } from './plan-routine.ts';
import type { RoutineAnswer, RoutineCall } from './routine-calls.ts';
import type { RoutinePath, RoutinePaths } from './routine-machine.ts';
import type { RoutineModel } from './routine-model.ts';

export interface RoutinesInput {
  routines: readonly RoutineModel[];
  /** Of the session at the start of the turn, without nodes that the graphs do not have. */
  paths: RoutinePaths;
  /** One for each matching pass that has begun, the first one included. */
  passes: readonly RoutinePass[];
  /** Routines that a policy or another routine has displaced in this turn: their paths stay as they were. */
  displaced: ReadonlySet<string>;
  /** By `callKey`. */
  answers: ReadonlyMap<string, RoutineAnswer>;
}

export interface RoutinesPlan {
  /** To be answered before the rest of the plan counts; without those that an answer has made needless. */
  calls: RoutineCall[];
  /** To be stored: those of routines that have ever been considered. Empty: a new version does not have the step at which the path stood. */
  paths: RoutinePaths;
  /** In the order of the routines. */
  steps: RoutineStep[];
  /** Routines with a live path. */
  active: ReadonlySet<string>;
}

/**
 * What the agent's routines need and do in a turn, from the answers so far. Each call computes all of the turn's passes anew, so that the result depends on
 * nothing but what is stored.
 */
export function planRoutines({ routines, paths, passes, displaced, answers }: RoutinesInput): RoutinesPlan {
  const plan = { calls: [] as RoutineCall[], steps: [] as RoutineStep[] };
  const after: (readonly [string, RoutinePath])[] = [];
  const active = new Set<string>();
  for (const model of routines) {
    const { id } = model.routine;
    const stored = ownValue(paths, id);
    const before = stored ?? [];
    const isDisplaced = displaced.has(id);
    const { calls, path, step } = isDisplaced ? { calls: [], path: before, step: null } : planRoutine(model, before, { passes, answers });
    plan.calls.push(...calls);
    if (path.length > 0 || stored !== undefined) after.push([id, path]);
    if (step !== null) plan.steps.push(step);
    if (step !== null) active.add(id);
  }
  return { ...plan, paths: Object.fromEntries(after), active };
}
