import { searchRowOf } from '../../engine/retrieval/search-row.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import type { SearchCommand, SearchSettled } from './types.ts';

const LOST: ToolOutcome = { type: 'failed', reason: 'timeout', message: 'the search brought no result in time' };

/** The end of a turn's awaited search; null for any other command. */
export function searchOf(plan: Plan, command: SearchCommand): SearchSettled | null {
  const search = plan.stateOf(turnActor)?.context.engine?.search ?? null;
  if (search?.callId !== command.callId) return null;
  const ms = Math.max(0, plan.atMs - search.openedAtMs);
  const row = searchRowOf(command.type === 'tool.completed' ? command.outcome : LOST, ms);
  return { type: 'search.settled', callId: command.callId, row };
}
