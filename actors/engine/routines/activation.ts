import { type Policy, policy } from '#shared/contracts/documents/policy.ts';
import type { Routine } from '#shared/contracts/documents/routine.ts';

/** The conditions of a routine as observations to be matched like those of policies; the routine is activated when one of them holds (rule 31). */
export function conditionPolicies(routine: Pick<Routine, 'id' | 'conditions'>): Policy[] {
  return routine.conditions.map((condition, index) => ({
    ...policy.parse({ id: 'condition', version: 1, condition }),
    id: conditionIdOf(routine.id, index),
  }));
}

/** Routines of which a condition is among the matched policies. */
export function activatedRoutines(routines: readonly Pick<Routine, 'id' | 'conditions'>[], matchedIds: ReadonlySet<string>): Set<string> {
  const activated = routines.filter(({ id, conditions }) => conditions.some((_, index) => matchedIds.has(conditionIdOf(id, index))));
  return new Set(activated.map(({ id }) => id));
}

/** With a colon, which no id of a document contains. */
function conditionIdOf(routineId: string, index: number): string {
  return `routine:${routineId}:${index + 1}`;
}
