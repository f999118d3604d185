/** The log field for an item's turn or run; messages carry either id under one name. */
export function actorIds(turnId: string): { run_id: string } | { turn_id: string } {
  return turnId.startsWith('run_') ? { run_id: turnId } : { turn_id: turnId };
}
