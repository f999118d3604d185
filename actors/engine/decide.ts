import type { EngineDocuments } from './engine-documents.ts';
import { matchingPhase } from './matching-phase.ts';
import type { CallRequest } from './turn-calls.ts';
import { currentRows, type RowOf, type TurnRow } from './turn-row.ts';

/** What a turn does next. */
export type Decision =
  /** Makes calls side by side, and decides again when all have their row. `status`: the stage that begins, null for none. */
  { type: 'ask'; status: 'matching' | null; calls: readonly CallRequest[] } | { type: 'compose'; resolved: RowOf<'resolved'> };

/**
 * What a turn does next, from its documents and its rows alone: equal rows give equal decisions in any process, in whatever order the rows arrived.
 * @param rows of the turn, in order; the first is `began`
 */
export function decide(documents: EngineDocuments, rows: readonly TurnRow[]): Decision {
  const { began, rows: current } = currentRows(rows);
  const phase = matchingPhase({ documents, began, rows: current, ranTools: [] });
  if (phase.type === 'ask') return { ...phase, status: 'matching' };
  const { matching, policies, routines, resolutions } = phase;
  return {
    type: 'compose',
    resolved: {
      kind: 'resolved',
      policies: [...policies].map(([id, rationale]) => ({ id, rationale })),
      clarifications: matching.clarifications,
      steps: routines.steps.map(({ routineId, stepId }) => ({ routineId, stepId })),
      paths: Object.fromEntries(Object.entries(routines.paths).map(([id, path]) => [id, [...path]])),
      resolutions: resolutions.filter(({ outcome }) => outcome !== 'none'),
    },
  };
}
