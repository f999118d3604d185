/** The log field for an item's turn or run; messages carry either id under one name. */
export function actorIds(actorId: string): { run_id: string } | { turn_id: string } {
  return actorId.startsWith('run_') ? { run_id: actorId } : { turn_id: actorId };
}
