import type { CommandOf } from '#bus/messages/session.ts';
import { nextSearch } from '../../engine/retrieval/next-search.ts';
import { searchRowOf } from '../../engine/retrieval/search-row.ts';
import { turnCalls } from '../../engine/turn-calls.ts';
import type { RowOf } from '../../engine/turn-row.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { documentsIn, turnRowsIn } from './turn-memory.ts';
import type { SearchCommand, SearchSettled } from './types.ts';

const LOST: ToolOutcome = { type: 'failed', reason: 'timeout', message: 'the search brought no result in time' };

/** The end of an awaited step of a turn's retrieval; null for any other command. */
export function searchOf(plan: Plan, command: SearchCommand): SearchSettled | null {
  const turn = plan.stateOf(turnActor);
  const search = turn?.context.engine?.search ?? null;
  if (turn === null || search?.callId !== command.callId) return null;
  const { turnId } = turn.context;
  const documents = documentsIn(plan);
  const rows = turnRowsIn(plan, turnId);
  const asked = nextSearch(documents, rows);
  if (asked === null) throw new TypeError(`the turn ${turnId} awaits a search that it does not need`);
  const ms = Math.max(0, plan.atMs - search.openedAtMs);
  const row = asked.type === 'rewrite' ? rewrittenBy(command, asked.call.key, ms, documents) : searchRowOf(outcomeOf(command), ms);
  return { type: 'search.settled', callId: command.callId, row, tokens: tokensOf(command), next: nextSearch(documents, [...rows, row]) };
}

/** Whatever goes wrong: the customer's own words are searched for. */
function rewrittenBy(command: SearchCommand, key: string, ms: number, documents: ReturnType<typeof documentsIn>): RowOf<'rewrite-query'> {
  const row = { kind: 'rewrite-query' as const, key, ms, tokens: tokensOf(command) };
  if (command.type !== 'call.completed') return { ...row, model: '', query: null };
  const read = turnCalls['rewrite-query'].questionOf(null, documents).read(command);
  return { ...row, model: command.model, query: read.type === 'read' ? (read.answer as string) : null };
}

function outcomeOf(command: SearchCommand): ToolOutcome {
  return command.type === 'tool.completed' ? command.outcome : LOST;
}

function tokensOf(command: SearchCommand): number {
  const usage = (command as Partial<CommandOf<'call.completed'>>).usage ?? null;
  return usage === null ? 0 : usage.promptTokens + usage.completionTokens;
}
