/** Id of an effect, its work item and the command with its result. @param effectNo from 1 */
export function effectIdOf(actorId: string, effectNo: number): string {
  return `${actorId}-${effectNo}`;
}

/** Key of the timer for an effect without a result in time. */
export function overdueKeyOf(effectId: string): string {
  return `${effectId}-overdue`;
}

/** Key of the timer that ends a turn or run. */
export function deadlineKeyOf(actorId: string): string {
  return `${actorId}-deadline`;
}
