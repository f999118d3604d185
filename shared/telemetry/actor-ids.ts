/** The turn or the run that work is for, as log lines name it: messages carry either of them under one name. */
export function actorIds(turnId: string): { run_id: string } | { turn_id: string } {
  return turnId.startsWith('run_') ? { run_id: turnId } : { turn_id: turnId };
}
