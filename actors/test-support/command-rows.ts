import type { CommandRows } from '../runtime/apply/commit-rows.ts';

/** What a command writes; by default nothing. */
export function commandRows(given: Partial<CommandRows>): CommandRows {
  const lists = { customers: [], events: [], steps: [], effects: [], closedEffects: [], timers: [], runs: [], runCalls: [], deliveries: [], deliveryEnds: [] };
  const ofTurns = { turnSteps: [], agentStates: [] };
  const logChanges = { changedEvents: [], deletedEvents: [] };
  return {
    partition: 1,
    sessionId: 'ses_1',
    session: null,
    isErased: false,
    labelled: null,
    ...lists,
    ...ofTurns,
    ...logChanges,
    deadLetters: [],
    aborts: [],
    milestones: [],
    ended: [],
    ...given,
  };
}
