import type { Documents } from '#shared/config/bundle-body.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { expandMacros } from '../expand-macros.ts';
import { graphOf, type RoutineGraph } from './graph.ts';
import type { RoutineEvaluation } from './routine-evaluation.ts';

/** A conversational routine as turns follow it. */
export interface RoutineModel {
  routine: Routine;
  graph: RoutineGraph;
  /** Null: pending or failed. `hash` names it in calls. */
  evaluation: { hash: string; value: RoutineEvaluation } | null;
}

/**
 * The routines that turns follow: conversational and enabled, of several versions the first, with macros expanded.
 * @param evaluationOf null: pending or failed
 */
export function routineModels(
  { routines, ...documents }: Pick<Documents, 'routines' | 'macros' | 'variable_sets'>,
  evaluationOf: (routine: Routine) => RoutineModel['evaluation'],
): RoutineModel[] {
  const models = new Map<string, RoutineModel>();
  for (const routine of routines) {
    if (routine.kind !== 'conversational' || !routine.enabled || models.has(routine.id)) continue;
    const steps = routine.steps.map((step) => (step.kind === 'chat' ? { ...step, chat_state: expandMacros(step.chat_state, documents) } : step));
    models.set(routine.id, { routine, graph: graphOf({ ...routine, steps }), evaluation: evaluationOf(routine) });
  }
  return [...models.values()];
}
