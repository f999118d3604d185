import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { TurnRecord, TurnSummary } from '#shared/contracts/agent/turn-record.ts';
import { readMark } from './moderation/moderation-mark.ts';
import { currentRows, type RowOf, type TurnRow } from './turn-row.ts';

/**
 * What a turn has decided, from what is stored of it.
 * @param events of the turn's trace from its `acknowledged` on, in order; at least that one
 * @param rows of the turn, in order; empty for an agent without an engine
 */
export function summaryOf(events: readonly ConversationEvent[], rows: readonly TurnRow[]): TurnSummary {
  const [first] = events;
  if (first === undefined) throw new TypeError('a turn without events');
  const last = events.findLast((event) => isStatus(event, 'ready'));
  const { current, resolved } = decidedIn(rows);
  return {
    trace_id: first.trace_id,
    begin_offset: first.offset,
    end_offset: last?.offset ?? null,
    created_at: first.created_at,
    ended_at: last?.created_at ?? null,
    ...endOf(events, last !== undefined),
    policies: resolved?.policies.map(({ id, rationale }) => ({ id, rationale })) ?? [],
    steps: resolved?.steps.map(({ routineId, stepId }) => ({ routine_id: routineId, step_id: stepId })) ?? [],
    tools: toolsIn(current).map(({ call }) => ({ tool_id: call.toolId, failed: call.hasFailed })),
  };
}

/**
 * The same with the reasons.
 * @param calls the turn's model calls, in the order of their opening
 * @param messages with a mark of moderation, since the turn before began
 */
export function recordOf(
  events: readonly ConversationEvent[],
  rows: readonly TurnRow[],
  calls: TurnRecord['calls'],
  messages: readonly ConversationEvent[] = [],
): TurnRecord {
  const { current, resolved } = decidedIn(rows);
  const search = current.findLast((row) => row.kind === 'search');
  return {
    ...summaryOf(events, rows),
    evidence: current.flatMap(evidenceIn),
    resolutions: resolved?.resolutions.map(({ entity, outcome, relationship, counterparts }) => ({ entity, outcome, relationship, counterparts })) ?? [],
    routines: current.flatMap(routineIn),
    clarifications: resolved?.clarifications.map(({ action }) => action) ?? [],
    unlisted_tools: resolved?.unlisted ?? [],
    cut_short: resolved?.cutShort ?? null,
    questions: resolved?.questions?.map(({ toolId, parameter, problem }) => ({ tool_id: toolId, parameter, problem })) ?? [],
    inferences: current.flatMap(inferencesIn),
    tools: toolsIn(current).map(({ call, ms }) => ({ tool_id: call.toolId, failed: call.hasFailed, arguments: call.arguments, ms })),
    retrieval: search?.kind === 'search' ? { documents: search.documents.length, failure: search.failure, ms: search.ms, query: queryIn(current) } : null,
    likeness: likenessIn(rows),
    check: checkIn(current),
    moderation: messages.flatMap(moderationIn),
    faults: rows.flatMap(faultsIn),
    calls,
  };
}

/** Rows of before a message joined do not count, but tools that ran then did run. */
function decidedIn(rows: readonly TurnRow[]): { current: readonly TurnRow[]; resolved: RowOf<'resolved'> | null } {
  if (rows.length === 0) return { current: [], resolved: null };
  const { rows: newest } = currentRows(rows);
  const before = rows.slice(0, rows.length - newest.length);
  const resolved = newest.findLast((row) => row.kind === 'resolved');
  return { current: [...before.filter(({ kind }) => kind === 'tool'), ...newest], resolved: resolved?.kind === 'resolved' ? resolved : null };
}

function toolsIn(rows: readonly TurnRow[]): RowOf<'tool'>[] {
  return rows.flatMap((row) => (row.kind === 'tool' ? [row] : []));
}

function evidenceIn(row: TurnRow): TurnRecord['evidence'] {
  if (row.kind !== 'match') return [];
  const { reference, answer, model, ms } = row;
  return answer.verdicts.map(({ id, applies, rationale }) => ({ id, applies, rationale, class: reference.class, batch: row.key, model, ms }));
}

function routineIn(row: TurnRow): TurnRecord['routines'] {
  if (row.kind !== 'routine') return [];
  const { kind: question, ...answer } = row.answer;
  return [{ routine_id: row.reference.routineId, question, answer, model: row.model, ms: row.ms }];
}

function inferencesIn(row: TurnRow): TurnRecord['inferences'] {
  if (row.kind !== 'infer-tools') return [];
  return row.answer.tools.map((tool) => ({ tool_id: tool.toolId, outcome: tool.outcome, rationale: 'rationale' in tool ? tool.rationale : null }));
}

function queryIn(rows: readonly TurnRow[]): NonNullable<TurnRecord['retrieval']>['query'] {
  const row = rows.findLast(({ kind }) => kind === 'query');
  return row?.kind === 'query' ? { text: row.query, failure: row.failure, model: row.model, ms: row.ms } : null;
}

/** Of the newest beginning. */
function likenessIn(rows: readonly TurnRow[]): TurnRecord['likeness'] {
  if (rows.length === 0) return null;
  const { began, rows: current } = currentRows(rows);
  const byWords = began.likeliest === undefined ? null : { id: began.likeliest, by: 'words' as const };
  const row = current.findLast(({ kind }) => kind === 'likeness');
  if (row?.kind !== 'likeness') return byWords === null ? null : { routine: byWords, terms: null, failure: null, model: null, ms: null };
  const { likeliest, terms, failure, model, ms } = row;
  return { routine: likeliest === undefined ? byWords : { id: likeliest, by: 'vectors' }, terms: terms?.length ?? null, failure, model, ms };
}

function moderationIn({ id, offset, metadata }: ConversationEvent): TurnRecord['moderation'] {
  const mark = readMark(metadata);
  return mark === null ? [] : [{ event_id: id, offset, ...mark }];
}

/** Also of before a message joined. */
function faultsIn(row: TurnRow): TurnRecord['faults'] {
  if (row.kind !== 'malformed') return [];
  const { asked: kind, key: batch, reason, model, ms } = row;
  return [{ kind, batch, reason, model, ms }];
}

function checkIn(rows: readonly TurnRow[]): TurnRecord['check'] {
  const row = rows.findLast(({ kind }) => kind === 'check-reply' || kind === 'unchecked');
  if (row?.kind === 'unchecked') return { outcome: 'unchecked', reason: row.reason, policies: [] };
  if (row?.kind !== 'check-reply') return null;
  const policies = row.answer.verdicts.map(({ id, applies, rationale }) => ({ id, followed: applies, rationale }));
  return { outcome: policies.every(({ followed }) => followed) ? 'followed' : 'missed', reason: null, policies };
}

function endOf(events: readonly ConversationEvent[], hasEnded: boolean): Pick<TurnSummary, 'outcome' | 'error' | 'reply'> {
  const event = events.findLast(({ kind, source }) => kind === 'assistant_message' && source === 'ai_agent');
  const failed = events.findLast((one) => isStatus(one, 'error'));
  const error = failed?.kind === 'status' ? failed.error_detail : null;
  const reply = event === undefined ? null : { event_id: event.id, offset: event.offset, model: nameIn(event, 'model'), provider: nameIn(event, 'provider') };
  if (failed !== undefined) return { outcome: 'failed', error, reply };
  if (reply !== null) return { outcome: 'replied', error: null, reply };
  if (events.some((one) => isStatus(one, 'cancelled'))) return { outcome: 'cancelled', error: null, reply };
  return { outcome: hasEnded ? 'silent' : 'in_progress', error: null, reply };
}

function nameIn({ metadata }: ConversationEvent, field: 'model' | 'provider'): string | null {
  const name = metadata[field];
  return typeof name === 'string' ? name : null;
}

function isStatus(event: ConversationEvent, status: string): boolean {
  return event.kind === 'status' && event.source === 'ai_agent' && event.status === status;
}
