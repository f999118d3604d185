import { deadlineKeyOf } from '../../tool-loop/effect-ids.ts';
import { turnSetup } from './turn-setup.ts';
import type { TurnActions, TurnContext } from './types.ts';

type Scope = { context: TurnContext };

/**
 * Whether the deadline needs no timer row: a turn of one model call has that call open until it ends, and a host that takes over derives the timer from
 * the call's effect (turn-call.ts).
 */
function isDerived({ engine, hasDeadlineRow = false }: TurnContext): boolean {
  return engine === undefined && !hasDeadlineRow;
}

export function armDeadline({ context }: Scope): TurnActions['timer'] {
  const { turnId, deadlineAtMs } = context;
  return { key: deadlineKeyOf(turnId), atMs: deadlineAtMs, ...(isDerived(context) && { isDerived: true }) };
}

export function disarmDeadline({ context }: Scope): TurnActions['disarm'] {
  return { key: deadlineKeyOf(context.turnId), ...(isDerived(context) && { isDerived: true }) };
}

/** For a turn that will wait without an open call. */
export const storeDeadline = turnSetup.enqueueActions(({ context, enqueue }) => {
  if (!isDerived(context)) return;
  enqueue.assign({ hasDeadlineRow: true });
  enqueue({ type: 'timer', params: { key: deadlineKeyOf(context.turnId), atMs: context.deadlineAtMs } });
});
