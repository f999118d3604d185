import { rewriteQuery } from '../../engine/retrieval/rewrite-query.ts';
import { failedSearchRow, searchRowOf } from '../../engine/retrieval/search-row.ts';
import type { RowOf } from '../../engine/turn-row.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import type { SearchCommand, SearchSettled } from './types.ts';

const LOST: ToolOutcome = { type: 'failed', reason: 'timeout', message: 'the search brought no result in time' };

/** What an awaited stage of a turn's search has brought; null for any other command. */
export function searchOf(plan: Plan, command: SearchCommand): SearchSettled | null {
  const search = plan.stateOf(turnActor)?.context.engine?.search ?? null;
  const { callId } = command;
  if (search?.callId !== callId) return null;
  const { atMs } = plan;
  const { stage = 'search', openedAtMs, stageOpenedAtMs = openedAtMs, deadlineAtMs = Number.POSITIVE_INFINITY } = search;
  const sinceMs = Math.max(0, atMs - openedAtMs);
  const stageMs = Math.max(0, atMs - stageOpenedAtMs);
  const settled = { type: 'search.settled' as const, callId, tokens: tokensOf(command) };
  const recorded = plan.inputs.engine?.recordedOf?.(callId) ?? null;
  if (recorded?.kind === 'query') return { ...settled, row: recorded, next: 'embed' };
  if (recorded?.kind === 'embedding') return { ...settled, row: recorded, next: 'search' };
  if (recorded?.kind === 'search') return { ...settled, row: recorded, next: null };
  if (stage === 'search') return { ...settled, row: searchRowOf(command.type === 'tool.completed' ? command.outcome : LOST, sinceMs), next: null };
  if (stage === 'rewrite-query') {
    const row = queryRowOf(command, stageMs);
    return atMs < deadlineAtMs ? { ...settled, row, next: 'embed' } : { ...settled, row: failedSearchRow('timeout', sinceMs), next: null };
  }
  const row = embeddingRowOf(command, stageMs);
  if (row === null) return { ...settled, row: failedSearchRow(atMs < deadlineAtMs ? 'no_embedding' : 'timeout', sinceMs), next: null };
  return { ...settled, row, next: 'search' };
}

/** A model that fails, is late or writes something else leaves the customer's words. */
function queryRowOf(command: SearchCommand, ms: number): RowOf<'query'> {
  const row = { kind: 'query' as const, key: 'query', ms, tokens: tokensOf(command) };
  if (command.type !== 'call.completed') return { ...row, query: null, model: null, failure: 'unavailable' };
  const read = rewriteQuery.read(command, null);
  const { model } = command;
  return read.type === 'read' ? { ...row, query: read.answer, model, failure: null } : { ...row, query: null, model, failure: 'malformed' };
}

/** Null: there is no vector. */
function embeddingRowOf(command: SearchCommand, ms: number): RowOf<'embedding'> | null {
  const vector = command.type === 'call.completed' ? command.vectors?.[0] : undefined;
  if (vector === undefined || command.type !== 'call.completed') return null;
  return { kind: 'embedding', key: 'embedding', model: command.model, ms, tokens: tokensOf(command), vector };
}

function tokensOf(command: SearchCommand): number {
  const usage = command.type === 'call.completed' ? command.usage : null;
  return usage === null ? 0 : usage.promptTokens + usage.completionTokens;
}
