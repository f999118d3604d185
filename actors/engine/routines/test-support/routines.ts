import { routine as routineSchema } from '#shared/contracts/documents/routine.ts';
import { type RoutineModel, routineModels } from '../routine-model.ts';

export const chat = (id: string) => ({ kind: 'chat', id, chat_state: `Say ${id}.` });
export const tool = (id: string) => ({ kind: 'tool', id, tool_state: [`s:${id}`] });
export const fork = (id: string) => ({ kind: 'fork', id });
export const way = (from: string, to: string, when: string | null = null) => ({ from, to, when });

/** A conversational routine, as turns follow it. */
export function modelOf(id: string, steps: object[], transitions: object[], evaluation: RoutineModel['evaluation'] = null): RoutineModel {
  const routine = routineSchema.parse({ id, version: 1, title: `Routine ${id}`, conditions: [`The customer wants ${id}`], steps, transitions });
  const [model] = routineModels({ routines: [routine], macros: [], variable_sets: [] }, () => evaluation);
  if (model === undefined) throw new Error('the routine is not conversational');
  return model;
}
