import type { CommandOf } from '#bus/messages/session.ts';
import type { Used } from '../../engine/budget.ts';
import { type Decision, decide } from '../../engine/decide.ts';
import type { EngineDocuments } from '../../engine/engine-documents.ts';
import { announcementOf } from '../../engine/tools/announcement.ts';
import { stagedCallOf, toolEventOf } from '../../engine/tools/tool-batch.ts';
import { iterationOf, placeOf } from '../../engine/tools/tool-rounds.ts';
import { serverOf } from '../../engine/tools/turn-tools.ts';
import { turnCalls } from '../../engine/turn-calls.ts';
import { currentRows, type RowOf, type TurnRow } from '../../engine/turn-row.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { askedCall, decideNext } from './asked-calls.ts';
import { likenessOf } from './likeness-scope.ts';
import { malformedRow } from './malformed-row.ts';
import { preambleOf } from './preamble.ts';
import { checkOf, dueIn, failedCheckOf, replyOf } from './reply-scope.ts';
import { searchOf } from './search-scope.ts';
import { documentsIn, recordedAnswer, toolsIn, turnRowsIn } from './turn-memory.ts';
import type { PendingCall, StepMalformed, StepSettled, TurnContext, TurnEventBody, TurnScope, Unsettled } from './types.ts';

const UNKNOWN: ToolOutcome = { type: 'failed', reason: 'outcome_unknown', message: 'the turn ended before the tool had answered' };

export function turnScopeOf(plan: Plan): TurnScope {
  return {
    stepOf: (command) => checkOf(plan, command) ?? stepOf(plan, command),
    replyOf: (command, reply) => replyOf(plan, command, reply),
    failedCheckOf: (callId) => failedCheckOf(plan, callId),
    preambleOf: (command) => preambleOf(plan, command),
    toolOf: (callId, outcome) => toolOf(plan, callId, outcome),
    overdueOf: (callId) => overdueOf(plan, callId),
    searchOf: (command) => searchOf(plan, command),
    likenessOf: (command) => likenessOf(plan, command),
  };
}

/** With what the turn needs beside the event, when calls are awaited that the event may end. */
export function withUnsettled(plan: Plan, event: TurnEventBody): TurnEventBody {
  switch (event.type) {
    case 'message.joined':
    case 'turn.cancel':
    case 'turn.poisoned':
      return { ...event, unsettled: unsettledIn(plan) };
    case 'turn.deadline':
      return { ...event, unsettled: unsettledIn(plan), unchecked: dueIn(plan) };
    default:
      return event;
  }
}

/** Undefined: no tool call is awaited. Calls that may be made again leave nothing. */
function unsettledIn(plan: Plan): Unsettled | undefined {
  const turn = plan.stateOf(turnActor);
  const pending = turn?.context.engine?.pending ?? [];
  const [first] = pending;
  if (turn === null || first?.isRepeatable === undefined) return undefined;
  const rows = turnRowsIn(plan, turn.context.turnId);
  // The configuration can't be read: the turn has to end nevertheless.
  if (rows.length === 0) return undefined;
  const unknown = unknownRows(
    plan,
    rows,
    pending.filter(({ isRepeatable }) => isRepeatable === false),
  );
  return { rows: unknown, fact: eventOf([...rows, ...unknown], first.key) };
}

/** What fails here has failed the turn's commands before, and must not fail the end of the turn, too. */
function unknownRows(plan: Plan, rows: readonly TurnRow[], calls: readonly PendingCall[]): RowOf<'tool'>[] {
  if (calls.length === 0) return [];
  try {
    const documents = documentsIn(plan);
    return calls.map((call) => rowOf(plan, documents, rows, call, UNKNOWN));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return [];
  }
}

function stepOf(plan: Plan, command: CommandOf<'call.completed'>): StepSettled | StepMalformed | null {
  const turn = plan.stateOf(turnActor);
  const { callId, usage, model } = command;
  const pending = turn?.context.engine?.pending ?? [];
  const call = pending.find((one) => one.callId === callId);
  if (turn === null || call === undefined) return null;
  const documents = documentsIn(plan);
  const toolsOf = toolsIn(plan);
  const rows = turnRowsIn(plan, turn.context.turnId);
  const request = askedCall(call.key, documents, rows, toolsOf);
  if (request === undefined) throw new TypeError(`the turn ${turn.context.turnId} awaits a call that it does not need`);
  const tokens = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
  const { kind, key, reference } = request;
  const reply = { ...command, isAskedAgain: call.malformed > 0 };
  const read = recordedAnswer(plan, callId, kind) ?? turnCalls[kind].questionOf(reference, documents, toolsOf).read(reply);
  const ms = Math.max(0, plan.atMs - call.openedAtMs);
  if (read.type === 'malformed') return { type: 'step.malformed', callId, request, row: malformedRow(kind, read.reason, { key, model, ms, tokens }), tokens };
  const row = { kind, key, reference, answer: read.answer, model, ms, tokens } as TurnRow;
  const others = pending.filter((one) => one.callId !== callId);
  // Of calls that are made side by side only those of routines can end each other: where a routine goes back, no next step is needed.
  const after = others.length === 0 || kind === 'routine' ? decideNext(documents, [...rows, row], toolsOf, usedIn(turn.context, tokens)) : null;
  const needless = after === null ? [] : others.filter((one) => !isNeeded(one, after)).map((one) => one.callId);
  return { type: 'step.settled', callId, row, tokens, next: needless.length === others.length ? after : null, needless };
}

/** With the tokens of the result that has come. */
function usedIn({ engine }: TurnContext, tokens: number): Used {
  return { calls: engine?.calls ?? 0, tokens: (engine?.tokens ?? 0) + tokens };
}

function isNeeded({ key }: PendingCall, decision: Decision): boolean {
  return decision.type === 'ask' && decision.calls.some((call) => call.key === key);
}

function toolOf(plan: Plan, callId: string, outcome: ToolOutcome): StepSettled | null {
  const turn = plan.stateOf(turnActor);
  const pending = turn?.context.engine?.pending ?? [];
  const call = pending.find((one) => one.callId === callId);
  if (turn === null || call?.isRepeatable === undefined) return null;
  const documents = documentsIn(plan);
  const rows = turnRowsIn(plan, turn.context.turnId);
  const row = rowOf(plan, documents, rows, call, outcome);
  if (pending.length > 1) return { type: 'step.settled', callId, row, tokens: 0, next: null };
  const all = [...rows, row];
  const fact = eventOf(all, call.key);
  // A cancelled turn decides and announces nothing more.
  if (turn.value === 'settling') return { type: 'step.settled', callId, row, tokens: 0, next: null, fact };
  const announcement = documents.announcesTools ? announced(all, call.key, plan) : null;
  return { type: 'step.settled', callId, row, tokens: 0, next: decideNext(documents, all, toolsIn(plan), usedIn(turn.context, 0)), fact, announcement };
}

/** The call may have been made all the same. */
function overdueOf(plan: Plan, callId: string): StepSettled | null {
  const call = plan.stateOf(turnActor)?.context.engine?.pending.find((one) => one.callId === callId);
  const reason = call?.isRepeatable === false ? 'outcome_unknown' : 'timeout';
  return toolOf(plan, callId, { type: 'failed', reason, message: 'the tool call brought no result in time' });
}

function rowOf(plan: Plan, documents: EngineDocuments, rows: readonly TurnRow[], call: PendingCall, outcome: ToolOutcome): RowOf<'tool'> {
  const planned = decide(documents, rows, toolsIn(plan));
  const made = planned.type === 'call' ? planned.calls.find(({ key }) => key === call.key) : undefined;
  if (made === undefined) throw new TypeError(`a turn awaits the tool call ${call.key}, which it does not need`);
  const recorded = plan.inputs.engine?.recordedOf?.(call.callId) ?? null;
  if (recorded?.kind === 'tool') return { ...recorded, key: call.key };
  const isTrusted = documents.trustedServers.has(serverOf(made.toolId));
  return { kind: 'tool', key: call.key, ms: Math.max(0, plan.atMs - call.openedAtMs), call: stagedCallOf(made, outcome, isTrusted) };
}

/** Of the batch that a call belongs to. */
function eventOf(rows: readonly TurnRow[], key: string) {
  return toolEventOf(batchOf(rows, key));
}

function announced(rows: readonly TurnRow[], key: string, plan: Plan): string {
  const toolIds = batchOf(rows, key).map(({ toolId }) => toolId);
  return announcementOf(toolIds, currentRows(rows).began.lists ?? {}, toolsIn(plan));
}

/** In the order of inference. */
function batchOf(rows: readonly TurnRow[], key: string) {
  const ofBatch = currentRows(rows).rows.flatMap((row) => (row.kind === 'tool' && iterationOf(row.key) === iterationOf(key) ? [row] : []));
  return ofBatch.toSorted((left, right) => placeOf(left.key) - placeOf(right.key)).map(({ call }) => call);
}
