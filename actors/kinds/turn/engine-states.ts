import { mayCall } from '../../engine/budget.ts';
import type { Decision } from '../../engine/decide.ts';
import { announcementMark } from '../../engine/tools/announcement.ts';
import type { TurnRow } from '../../engine/turn-row.ts';
import { deadlineKeyOf, effectIdOf, overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import { overdueTimer } from '../../tool-loop/overdue-timer.ts';
import { statusFact } from '../../tool-loop/status-fact.ts';
import { openLikeness } from './likeness-states.ts';
import { beginStage, endPreamble } from './preamble-states.ts';
import { turnSetup } from './turn-setup.ts';
import type { EngineContext, Opening, PendingCall, StepMalformed, TurnContext, TurnEvent } from './types.ts';

/** Answers of one call that can't be read. */
const MAX_MALFORMED = 2;

/** Of one tool call; the turn's own deadline may be nearer. */
const TOOL_CALL_TIMEOUT_MS = 90_000;
/** A cancelled turn waits so long for calls that can't be taken back. */
const SETTLED_WITHIN_MS = 30_000;

type Args = { context: TurnContext; event: TurnEvent };

/** The engine's part of a turn that has one. @throws TypeError in a turn without */
export function engineOf({ engine }: TurnContext) {
  if (engine === undefined) throw new TypeError('a turn without an engine');
  return engine;
}

export function hasEngine({ context }: { context: TurnContext }): boolean {
  return context.engine !== undefined;
}

/** Context of a turn that begins so. */
export function engineAtStart({ decision }: Opening, isHeld: boolean): NonNullable<TurnContext['engine']> {
  const nothing = { pending: [], calls: 0, tokens: 0, status: null };
  if (isHeld) return { stepCount: 0, ...nothing };
  // The first row is staged by `stageOpening`.
  return { stepCount: 1, ...nothing, next: decision };
}

/** A message joins, or all are checked: all begins anew, with the rows before out of account. */
export const restart = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const opening = 'opening' in event ? event.opening : undefined;
  if (opening === undefined) throw new TypeError('a turn with an engine begins anew, without a new beginning');
  const { planning: _, ...engine } = engineOf(context);
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: opening.row } });
  enqueue.assign({ engine: { ...engine, stepCount: engine.stepCount + 1, pending: [], next: opening.decision } });
});

/** Ends a batch before all its calls have settled. What tools have done by then stands in the log, and outcomes that are not known like others. */
export const endBatch = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const engine = engineOf(context);
  const { rows = [], fact = null } = 'unsettled' in event ? (event.unsettled ?? {}) : {};
  for (const [index, row] of rows.entries()) enqueue({ type: 'stage', params: { seq: engine.stepCount + index, row } });
  const passed = fact === null ? {} : endPreamble(enqueue, context.preamble);
  if (fact !== null) enqueue({ type: 'fact', params: { content: fact, id: null, metadata: {} } });
  for (const key of overdueKeysOf(engine.pending)) enqueue({ type: 'disarm', params: { key } });
  const reported = 'callId' in event ? event.callId : null;
  for (const { callId } of engine.pending) if (callId !== reported) enqueue({ type: 'supersede', params: { id: callId } });
  enqueue.assign({ ...passed, engine: { ...engine, stepCount: engine.stepCount + rows.length, pending: [] } });
});

/** Of the timers of tool calls, and of a call for vectors. */
function overdueKeysOf(calls: readonly PendingCall[]): string[] {
  return calls.flatMap(({ callId, isRepeatable, isForLikeness }) => (isRepeatable === undefined && isForLikeness === undefined ? [] : [overdueKeyOf(callId)]));
}

/** Calls that may have an effect and can't be taken back: a cancelled turn waits for them. */
export function mustSettle({ engine }: TurnContext): boolean {
  return engine?.pending.some(({ isRepeatable }) => isRepeatable === false) ?? false;
}

export function isCancelledLate({ context, event }: Args): boolean {
  return event.type === 'turn.cancel' && event.mayWait === true && mustSettle(context);
}

/** Ends the calls that nothing has to wait for, and bounds the wait for the others. */
export const beginSettling = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const engine = engineOf(context);
  const others = engine.pending.filter(({ isRepeatable }) => isRepeatable !== false);
  for (const { callId } of others) enqueue({ type: 'supersede', params: { id: callId } });
  for (const key of overdueKeysOf(others)) enqueue({ type: 'disarm', params: { key } });
  const atMs = Math.min(context.deadlineAtMs, atMsOf(event) + SETTLED_WITHIN_MS);
  enqueue({ type: 'timer', params: { key: deadlineKeyOf(context.turnId), atMs } });
  enqueue.assign({ engine: { ...engine, pending: engine.pending.filter((call) => !others.includes(call)) } });
});

export const isComposing = ({ context }: { context: TurnContext }) => engineOf(context).next?.type === 'compose';
export const isOverBudget = ({ context }: { context: TurnContext }) => {
  const engine = engineOf(context);
  return engine.next?.type === 'ask' && !mayCall(engine, engine.next.calls.length);
};

/** Stores the decision. */
export const resolve = turnSetup.enqueueActions(({ context, enqueue }) => {
  const { next, isToCheck: _, planning: __, ...engine } = engineOf(context);
  if (next?.type !== 'compose') throw new TypeError('a reply is composed without a decision');
  const { critical = [] } = next.resolved;
  const hasBudget = mayCall(engine, 1);
  const rows: TurnRow[] = critical.length > 0 && !hasBudget ? [next.resolved, { kind: 'unchecked', reason: 'over_budget' }] : [next.resolved];
  for (const [index, row] of rows.entries()) enqueue({ type: 'stage', params: { seq: engine.stepCount + index, row } });
  enqueue.assign({
    engine: { ...engine, stepCount: engine.stepCount + rows.length, ...(critical.length > 0 && hasBudget && { isToCheck: true }) },
  });
});

export const beginTyping = turnSetup.enqueueActions(({ context, enqueue }) => {
  const engine = engineOf(context);
  const stage = engine.status === 'typing' ? {} : beginStage(enqueue, context, 'typing');
  enqueue.assign({ ...stage, engine: { ...engine, status: 'typing' } });
});

/** Opens the calls of a decision. */
export const ask = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const { next, planning, ...engine } = engineOf(context);
  if (next?.type === 'embed') return enqueue.assign(openLikeness(enqueue, context, next.texts, atMsOf(event)));
  if (next?.type !== 'ask' && next?.type !== 'call') throw new TypeError('calls are made without a decision');
  const { turnId } = context;
  const atMs = atMsOf(event);
  const isOfTools = next.type === 'call';
  const deadlineAtMs = isOfTools ? Math.min(context.deadlineAtMs, atMs + TOOL_CALL_TIMEOUT_MS) : context.deadlineAtMs;
  const isNews = engine.status !== 'typing' && engine.status !== next.status;
  const stage = isNews && next.status !== null ? beginStage(enqueue, context, next.status) : {};
  const pending = next.calls.map((call, index): PendingCall => {
    const id = effectIdOf(turnId, context.callNo + index + 1);
    return { callId: id, key: call.key, malformed: 0, openedAtMs: atMs, ...('isRepeatable' in call && { isRepeatable: call.isRepeatable }) };
  });
  for (const [index, call] of next.calls.entries()) {
    const common = { id: pending[index]?.callId ?? '', deadlineAtMs, staged: engine.stepCount };
    if ('from' in call) enqueue({ type: 'effect', params: { kind: 'tool-call', ...common, toolId: call.toolId, listHash: call.listHash, from: call.from } });
    else enqueue({ type: 'effect', params: { kind: 'turn-step', ...common, request: call } });
    if (isOfTools) enqueue({ type: 'timer', params: overdueTimer(common.id, deadlineAtMs, 'turn-tool-call') });
  }
  const asks = isOfTools ? {} : { planning: planning ?? { from: engine.stepCount, atMs } };
  enqueue.assign({
    ...stage,
    callNo: context.callNo + pending.length,
    engine: { ...engine, ...asks, pending, calls: engine.calls + (isOfTools ? 0 : pending.length), ...(isNews && { status: next.status }) },
  });
});

export function isAwaited({ context, event }: Args): boolean {
  return pendingCallOf({ context, event }) !== undefined;
}

export function isLastAwaited({ context, event }: Args): boolean {
  const needless = event.type === 'step.settled' ? (event.needless ?? []) : [];
  return isAwaited({ context, event }) && engineOf(context).pending.length === 1 + needless.length;
}

/** Asked once more already. */
export function isMalformedAgain({ context, event }: Args): boolean {
  const call = pendingCallOf({ context, event });
  return call !== undefined && call.malformed + 1 >= MAX_MALFORMED;
}

/** Stages an answer. */
export const settleStep = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  if (event.type !== 'step.settled') return;
  const engine = engineOf(context);
  const { needless = [] } = event;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: event.row } });
  for (const key of overdueKeysOf(engine.pending.filter(({ callId }) => callId === event.callId))) enqueue({ type: 'disarm', params: { key } });
  for (const id of needless) enqueue({ type: 'supersede', params: { id } });
  const passed = event.fact || event.announcement ? endPreamble(enqueue, context.preamble) : {};
  if (event.fact) enqueue({ type: 'fact', params: { content: event.fact, id: null, metadata: {} } });
  const stage = event.announcement ? stageAfter(engine.status, event.next) : null;
  if (event.announcement) {
    enqueue({ type: 'fact', params: { content: { kind: 'preamble', text: event.announcement }, id: null, metadata: announcementMark } });
    // In place of the label of the stage that follows, if one does (agent-server, `announce_tools`).
    if (engine.status !== 'typing') enqueue({ type: 'fact', params: statusFact('processing', { stage: event.announcement }) });
  }
  enqueue.assign({
    ...passed,
    engine: {
      ...engine,
      stepCount: engine.stepCount + 1,
      tokens: engine.tokens + event.tokens,
      pending: engine.pending.filter(({ callId }) => callId !== event.callId && !needless.includes(callId)),
      ...(event.next !== null && { next: event.next }),
      ...(stage !== null && { status: stage }),
    },
  });
});

/** The stage that an announcement stands for. */
function stageAfter(status: EngineContext['status'], next: Decision | null): EngineContext['status'] {
  return status === 'typing' || next === null || next.type === 'compose' ? status : next.status;
}

/** Makes a call once more, in place of the one whose answer is malformed. */
export const askAgain = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  if (event.type !== 'step.malformed') return;
  const { turnId, deadlineAtMs, callNo } = context;
  const engine = engineOf(context);
  const id = effectIdOf(turnId, callNo + 1);
  const stepCount = engine.stepCount + 1;
  enqueue(stagedFault(engine, event));
  enqueue({ type: 'effect', params: { kind: 'turn-step', id, deadlineAtMs, staged: stepCount, request: event.request } });
  const pending = engine.pending.map((call) => (call.callId === event.callId ? { ...call, callId: id, malformed: call.malformed + 1 } : call));
  enqueue.assign({ callNo: callNo + 1, engine: { ...engine, stepCount, pending, calls: engine.calls + 1, tokens: engine.tokens + event.tokens } });
});

function stagedFault({ stepCount: seq }: EngineContext, { row }: StepMalformed) {
  return { type: 'stage' as const, params: { seq, row } };
}

/** Stores the second answer that can't be read. */
export const stageMalformed = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  if (event.type !== 'step.malformed') return;
  const engine = engineOf(context);
  enqueue(stagedFault(engine, event));
  enqueue.assign({ engine: { ...engine, stepCount: engine.stepCount + 1, tokens: engine.tokens + event.tokens } });
});

/** XState's first event has the machine's input. */
export function atMsOf(event: TurnEvent | { input: { atMs: number } }): number {
  return 'input' in event ? event.input.atMs : event.atMs;
}

function pendingCallOf({ context, event }: Args): PendingCall | undefined {
  return 'callId' in event ? context.engine?.pending.find(({ callId }) => callId === event.callId) : undefined;
}
