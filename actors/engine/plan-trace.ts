import { maskUrl } from '#shared/telemetry/redact.ts';
import type { Attributes, ContentCapture, SpanEvent } from '#shared/telemetry/tracing.ts';
import { iterationOf } from './tools/tool-rounds.ts';
import { currentRows, type RowOf, type TurnRow } from './turn-row.ts';

/** Of one attribute with a list of ids. */
const MAX_IDS = 100;

/** What a span says beyond its name and times. Ids and counts; rationales as `TRACE_CONTENT` allows. */
export interface SpanDetails {
  attributes: Attributes;
  events: SpanEvent[];
}

/**
 * What one planning of a turn has found: matching, steps of routines, tools to call.
 * @param rows of the turn, in order @param from number of the planning's first row @param atMs of its end
 */
export function planDetails(rows: readonly TurnRow[], from: number, atMs: number, content: ContentCapture): SpanDetails {
  const own = rowsFrom(rows, from);
  const matches = own.flatMap((row) => (row.kind === 'match' ? [row] : []));
  const resolved = own.find((row) => row.kind === 'resolved');
  return {
    attributes: {
      'switchyard.iteration': iterationAt(rows, from),
      'switchyard.calls': own.filter(isCall).length,
      'switchyard.faults': faultsIn(own),
      'switchyard.policies.matched': idsOf(matches.flatMap(({ answer }) => answer.verdicts.flatMap(({ id, applies }) => (applies ? [id] : [])))),
      'switchyard.tools.inferred': idsOf(own.flatMap((row) => (row.kind === 'infer-tools' ? row.answer.tools.map(({ toolId }) => toolId) : []))),
      ...(resolved === undefined ? {} : attributesOf(resolved)),
    },
    events: [...(resolved === undefined ? [] : resolvedEvents(resolved, atMs)), ...matches.flatMap((row) => matchedEvents(row, atMs, content))],
  };
}

/** What a whole turn has done. @param rows empty for an agent without an engine */
export function turnDetails(rows: readonly TurnRow[]): Attributes {
  if (rows.length === 0) return {};
  const { rows: current } = currentRows(rows);
  const resolved = current.findLast((row) => row.kind === 'resolved');
  const search = current.findLast((row) => row.kind === 'search');
  const check = current.findLast((row) => row.kind === 'check-reply' || row.kind === 'unchecked');
  return {
    'switchyard.calls': rows.filter(isCall).length,
    'switchyard.faults': faultsIn(rows),
    'switchyard.tools.called': rows.filter(({ kind }) => kind === 'tool').length,
    'switchyard.documents': search?.documents.length,
    'switchyard.reply_check': check === undefined ? undefined : checkOf(check),
    ...(resolved === undefined ? {} : attributesOf(resolved)),
  };
}

/** Up to the tool calls that follow. A search runs beside. */
function rowsFrom(rows: readonly TurnRow[], from: number): TurnRow[] {
  const rest = rows.slice(from);
  const end = rest.findIndex(({ kind }) => kind === 'tool' || kind === 'began');
  return end === -1 ? rest : rest.slice(0, end);
}

function iterationAt(rows: readonly TurnRow[], from: number): number {
  const { rows: before } = currentRows(rows.slice(0, from));
  return Math.max(0, ...before.flatMap((row) => (row.kind === 'tool' ? [iterationOf(row.key)] : []))) + 1;
}

/** Absent when there are none. */
function faultsIn(rows: readonly TurnRow[]): number | undefined {
  return rows.filter(({ kind }) => kind === 'malformed').length || undefined;
}

function isCall({ kind }: TurnRow): boolean {
  return kind === 'match' || kind === 'routine' || kind === 'infer-tools' || kind === 'check-reply' || kind === 'malformed';
}

function attributesOf({ policies, steps, resolutions, unlisted = [], cutShort }: RowOf<'resolved'>): Attributes {
  return {
    'switchyard.policies.applied': idsOf(policies.map(({ id }) => id)),
    'switchyard.steps': idsOf(steps.map(({ routineId, stepId }) => `${routineId}:${stepId}`)),
    'switchyard.resolutions': idsOf(resolutions.map(({ outcome }) => outcome)),
    'switchyard.tools.unlisted': idsOf(unlisted),
    'switchyard.cut_short': cutShort,
  };
}

function resolvedEvents({ steps, resolutions }: RowOf<'resolved'>, atMs: number): SpanEvent[] {
  const entered = steps.map(({ routineId, stepId }) => {
    return { name: 'step.entered', atMs, attributes: { 'switchyard.routine.id': routineId, 'switchyard.step.id': stepId } };
  });
  const dropped = resolutions.flatMap(({ entity, outcome, relationship, counterparts }): SpanEvent[] => {
    if (outcome === 'none' || outcome === 'entailed') return [];
    const attributes = { 'switchyard.entity': entity, 'switchyard.resolution': outcome, 'switchyard.relationship': relationship ?? undefined };
    return [{ name: 'policy.dropped', atMs, attributes: { ...attributes, 'switchyard.counterparts': idsOf(counterparts) } }];
  });
  return [...entered, ...dropped];
}

function matchedEvents({ key, reference, answer }: RowOf<'match'>, atMs: number, content: ContentCapture): SpanEvent[] {
  const batch = { 'switchyard.batch': key, 'switchyard.batch.class': reference.class, 'switchyard.batch.size': reference.policyIds.length };
  return answer.verdicts.flatMap(({ id, applies, rationale }) => {
    if (!applies) return [];
    const attributes = { 'switchyard.policy.id': id, ...batch, 'switchyard.rationale': shown(rationale, content) };
    return [{ name: 'policy.matched', atMs, attributes }];
  });
}

function checkOf(row: RowOf<'check-reply'> | RowOf<'unchecked'>): string {
  if (row.kind === 'unchecked') return row.kind;
  return row.answer.verdicts.every(({ applies }) => applies) ? 'followed' : 'missed';
}

/** Each once; absent when there are none. */
function idsOf(ids: readonly string[]): string[] | undefined {
  const distinct = [...new Set(ids)].slice(0, MAX_IDS);
  return distinct.length === 0 ? undefined : distinct;
}

function shown(text: string | null, content: ContentCapture): string | undefined {
  if (text === null || content === 'off') return undefined;
  return content === 'full' ? maskUrl(text) : `[${text.length} characters]`;
}
