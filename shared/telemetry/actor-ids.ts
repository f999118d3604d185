/** The log field for what an item is about: a turn, a run, or a message that is checked. Messages carry each id under one name. */
export function actorIds(actorId: string): { run_id: string } | { turn_id: string } | { event_id: string } {
  if (actorId.startsWith('evt_')) return { event_id: actorId };
  return actorId.startsWith('run_') ? { run_id: actorId } : { turn_id: actorId };
}
