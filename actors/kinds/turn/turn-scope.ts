import type { CommandOf } from '#bus/messages/session.ts';
import { decide } from '../../engine/decide.ts';
import { turnCalls } from '../../engine/turn-calls.ts';
import type { TurnRow } from '../../engine/turn-row.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { turnRowsIn } from './turn-memory.ts';
import type { StepMalformed, StepSettled, TurnScope } from './types.ts';

export function turnScopeOf(plan: Plan): TurnScope {
  return { stepOf: (command) => stepOf(plan, command) };
}

function stepOf(plan: Plan, command: CommandOf<'call.completed'>): StepSettled | StepMalformed | null {
  const turn = plan.stateOf(turnActor);
  const { callId, usage, model } = command;
  const pending = turn?.context.engine?.pending ?? [];
  const call = pending.find((one) => one.callId === callId);
  if (turn === null || call === undefined) return null;
  const documents = plan.inputs.engine?.documentsOf(turn.bundleHash) ?? null;
  if (documents === null) throw new TypeError(`the turn ${turn.context.turnId} has policies, and its configuration none`);
  const rows = turnRowsIn(plan, turn.context.turnId);
  const decision = decide(documents, rows);
  const request = decision.type === 'ask' ? decision.calls.find(({ key }) => key === call.key) : undefined;
  if (request === undefined) throw new TypeError(`the turn ${turn.context.turnId} awaits a call that it does not need`);
  const tokens = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
  const { kind, key, reference } = request;
  const read = turnCalls[kind].questionOf(reference, documents).read(command);
  if (read.type === 'malformed') return { type: 'step.malformed', callId, request, tokens };
  const row = { kind, key, reference, answer: read.answer, model, ms: Math.max(0, plan.atMs - call.openedAtMs), tokens } as TurnRow;
  return { type: 'step.settled', callId, row, tokens, next: pending.length === 1 ? decide(documents, [...rows, row]) : null };
}
