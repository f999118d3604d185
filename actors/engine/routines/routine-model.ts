import type { Documents } from '#shared/config/bundle-body.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { ownValue } from '#shared/own-value.ts';
import { expandMacros, variablesIn } from '../expand-macros.ts';
import { noValues, type VariableValues } from '../variables/variable-values.ts';
import { graphOf, type RoutineGraph } from './graph.ts';
import type { RoutineEvaluation } from './routine-evaluation.ts';

/** A conversational routine as turns follow it. */
export interface RoutineModel {
  routine: Routine;
  graph: RoutineGraph;
  /** Null: pending or failed. `hash` names it in calls. */
  evaluation: { hash: string; value: RoutineEvaluation } | null;
}

type RoutineDocuments = Pick<Documents, 'routines' | 'macros' | 'variable_sets'>;

/**
 * The routines that turns follow: conversational and enabled, of several versions the first, with macros expanded.
 * @param evaluationOf null: pending or failed
 * @param values of the session's customer; absent: the documents' defaults
 */
export function routineModels(
  { routines, ...documents }: RoutineDocuments,
  evaluationOf: (routine: Routine) => RoutineModel['evaluation'],
  values: VariableValues = noValues,
): RoutineModel[] {
  const expand = (text: string) => expandMacros(text, documents, values);
  const models = new Map<string, RoutineModel>();
  for (const routine of routines) {
    if (routine.kind !== 'conversational' || !routine.enabled || models.has(routine.id)) continue;
    const steps = routine.steps.map((step) => (step.kind === 'chat' ? { ...step, chat_state: expand(step.chat_state) } : step));
    models.set(routine.id, { routine, graph: graphOf({ ...routine, steps }), evaluation: expanded(routine, evaluationOf(routine), expand) });
  }
  return [...models.values()];
}

/** The variables that steps of routines name. */
export function stepVariables({ routines, macros }: Pick<RoutineDocuments, 'routines' | 'macros'>): string[] {
  return variablesIn(
    routines.flatMap(({ steps }) => steps.flatMap((step) => (step.kind === 'chat' ? [step.chat_state] : []))),
    { macros },
  );
}

/** Documents are evaluated as they are written, so the instructions of chat steps name their macros there, too. */
function expanded({ steps }: Routine, evaluation: RoutineModel['evaluation'], expand: (text: string) => string): RoutineModel['evaluation'] {
  if (evaluation === null) return null;
  const { nodes } = evaluation.value;
  const changed = steps.flatMap(({ id, kind }) => {
    const node = ownValue(nodes, id);
    return kind !== 'chat' || node === undefined || node.internal_action === null
      ? []
      : [[id, { ...node, internal_action: expand(node.internal_action) }] as const];
  });
  return { ...evaluation, value: { nodes: { ...nodes, ...Object.fromEntries(changed) } } };
}
