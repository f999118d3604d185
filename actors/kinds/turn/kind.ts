import { actorFields } from '#bus/messages/actor-fields.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { ownTurnRow, type TurnRow } from '../../engine/turn-row.ts';
import type { ActorKind, ActorState, ActorTransition } from '../actor-kind.ts';
import { type Handlers, openEffect, type Plan } from '../plan.ts';
import { sessionActor } from '../session/actor.ts';
import { waitingTurnId } from '../session/turn-id.ts';
import { turnActor } from './actor.ts';
import { openAppliedCheck } from './applied-check.ts';
import { TURN_MACHINE_VERSION, turnMachine } from './machine.ts';
import { rememberPreamble } from './preamble.ts';
import { modeAskedIn, remember } from './turn-memory.ts';
import { contextFor, detailsOf, endPlanning } from './turn-trace.ts';
import type { TurnActions, TurnContext } from './types.ts';

const handlers: Handlers<TurnActions> = {
  fact: (plan, { content, id, metadata }) => {
    plan.append(content, { source: 'ai_agent', metadata, traceId: stateOf(plan).traceId, id });
  },
  stage: (plan, { seq, row }) => {
    const { partition, sessionId, lastOffset: offset } = plan;
    const { traceId, context } = stateOf(plan);
    plan.turnSteps.push({ partition, sessionId, turnId: context.turnId, seq, offset, body: ownTurnRow(row) });
    noteCheck(plan, row, { turn_id: context.turnId, trace_id: traceId });
    noteSearch(plan, row, { turn_id: context.turnId, trace_id: traceId });
    noteLikeness(plan, row, { turn_id: context.turnId, trace_id: traceId });
    if (row.kind === 'resolved' && row.cutShort !== undefined)
      plan.note(`a turn answers before it has matched all: ${row.cutShort}`, { turn_id: context.turnId, trace_id: traceId });
  },
  rememberPreamble: (plan, { text }) => rememberPreamble(plan, text),
  remember: (plan) => {
    const { turnId } = stateOf(plan).context;
    remember(plan, turnId);
    openAppliedCheck(plan, turnId);
  },
  effect: (plan, request) => {
    const { bundleHash, traceparent, carried, context } = stateOf(plan);
    const { turnId: actorId } = context;
    const below = contextFor(request.kind, context, traceparent);
    openEffect(plan, turnActor.name, request, { id: request.id, actorId, bundleHash, traceparent: below, carried });
  },
  supersede: (plan, { id }) => plan.closeEffect(id, 'superseded'),
  timer: (plan, { key, atMs, isDerived, command }) => {
    const { turnId } = stateOf(plan).context;
    plan.arm(key, atMs, command === undefined ? { type: 'turn.deadline', turnId } : { ...command, ...actorFields(turnId) }, { isDerived });
  },
  disarm: (plan, { key, isDerived }) => plan.disarm(key, { isDerived }),
};

export const turnKind: ActorKind<Plan> = {
  name: turnActor.name,
  machine: turnMachine,
  snapshot: {
    version: TURN_MACHINE_VERSION,
    place: 100,
    migrations: new Map([
      [1, unchanged],
      [2, unchanged],
      [3, withDeadlineRow],
      [4, unchanged],
    ]),
  },
  initial: null,
  handlers,
  afterTransition,
};

function outcomeOf({ value }: ActorState): 'completed' | 'cancelled' | 'failed' {
  return value === 'completed' || value === 'cancelled' ? value : 'failed';
}

/** States of version 1, which had no engine, of version 2, which waited for no moderation, and of version 4, which compared no vectors, fit: their hosts must not own turns that do. */
function unchanged(state: ActorState): ActorState {
  return state;
}

/** Version 3 stored a timer for each turn. */
function withDeadlineRow(state: ActorState): ActorState {
  const context = state.context as TurnContext;
  return context.engine === undefined ? { ...state, context: { ...context, hasDeadlineRow: true } } : state;
}

function afterTransition(plan: Plan, { before, event, state, isDone, hasActions }: ActorTransition): void {
  const { turnId, deadlineAtMs } = state.context as TurnContext;
  const { traceId, bundleHash, traceparent: parent, startedAtMs = plan.atMs } = stateOf(plan);
  endPlanning(plan, before, { context: state.context as TurnContext, isDone, outcome: outcomeOf(state) });
  if (event === null) plan.note('a turn began', { turn_id: turnId, trace_id: traceId });
  // A result with actions was the awaited one.
  else if (isResult(event) && (hasActions || isPreambleOf(before, event))) plan.closeEffect(event.callId, 'done');
  if (!isDone) return;
  const outcome = outcomeOf(state);
  // Only the deadline is in the turn's context.
  const durationMs = plan.atMs - (deadlineAtMs - plan.inputs.turnTimeoutMs);
  const count = (metrics: Metrics) => {
    metrics.add('turns', { outcome });
    metrics.observe('turnSeconds', {}, durationMs / 1_000);
  };
  plan.note('a turn ended', { turn_id: turnId, trace_id: traceId }, { outcome, durationMs, count });
  plan.noteEnd({ kind: 'turn', id: turnId, routineId: null, bundleHash, parent, startedAtMs, outcome, ...detailsOf(plan, state.context as TurnContext) });
  // However it ends: a tool that has called a colleague has done so.
  const mode = modeAskedIn(plan, turnId);
  plan.end(turnActor);
  plan.send(sessionActor, { type: 'turn.settled', turnId, nextTurnId: waitingTurnId(plan) });
  // Last: the turn whose message has cancelled this one begins in the mode of that message.
  if (mode !== null) plan.send(sessionActor, { type: 'mode.asked', mode });
}

/** The outcome of a reply's check. */
function noteCheck(plan: Plan, row: TurnRow, ids: Record<string, string>): void {
  if (row.kind !== 'check-reply' && row.kind !== 'unchecked') return;
  const isFollowed = row.kind === 'check-reply' && row.answer.verdicts.every(({ applies }) => applies);
  const outcome = row.kind === 'unchecked' ? row.kind : isFollowed ? 'followed' : 'missed';
  const what = row.kind === 'unchecked' ? `a reply was sent without its check: ${row.reason}` : 'a reply was checked';
  plan.note(what, ids, { outcome, durationMs: 'ms' in row ? row.ms : 0, count: (metrics) => metrics.add('replyChecks', { outcome }) });
}

/** What of a search no effect worker counts: whether a model made its query, and that there was no vector to search for. */
function noteSearch(plan: Plan, row: TurnRow, ids: Record<string, string>): void {
  if (row.kind === 'query') {
    const outcome = row.failure ?? 'rewritten';
    plan.note('a search has its query', ids, { outcome, durationMs: row.ms, count: (metrics) => metrics.add('searchQueries', { outcome }) });
  }
  if (row.kind !== 'search' || row.failure !== 'no_embedding') return;
  const { failure: outcome, ms: durationMs } = row;
  plan.note('a search has no vector: the turn replies without documents', ids, {
    outcome,
    durationMs,
    count: (metrics) => metrics.add('searches', { outcome }),
  });
}

/** Of an agent with vectors of its texts: whether they decided what a message is most like. */
function noteLikeness(plan: Plan, row: TurnRow, ids: Record<string, string>): void {
  if (row.kind !== 'likeness') return;
  const outcome = row.failure ?? 'vectors';
  const what = row.failure === null ? 'likeness was decided by vectors' : 'likeness is decided by shared words';
  plan.note(what, ids, { outcome, durationMs: row.ms, count: (metrics) => metrics.add('likeness', { outcome }) });
}

function isResult(event: object): event is { callId: string } {
  return 'callId' in event;
}

/** Of the awaited one: it may have come too late for an event. */
function isPreambleOf(before: ActorState | null, { callId }: { callId: string }): boolean {
  return before !== null && (before.context as TurnContext).preamble?.callId === callId;
}

function stateOf(plan: Plan) {
  const state = plan.stateOf(turnActor);
  if (state === null) throw new TypeError('an action outside a turn');
  return state;
}
