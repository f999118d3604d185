import type { CommandOf } from '#bus/messages/session.ts';
import { checkRequest, draftIn } from '../../engine/composition/reply-check.ts';
import { turnCalls } from '../../engine/turn-calls.ts';
import type { RowOf, TurnRow } from '../../engine/turn-row.ts';
import { effectIdOf } from '../../tool-loop/effect-ids.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { malformedRow } from './malformed-row.ts';
import type { ComposedReply } from './steps/compose-reply.ts';
import { documentsIn, recordedAnswer, turnRowsIn } from './turn-memory.ts';
import type { CheckSettled, StepMalformed, TurnEventBody, Unchecked } from './types.ts';

/** A reply, with its check where policies of high criticality are in force. */
export function replyOf(plan: Plan, { callId, usage }: CommandOf<'call.completed'>, reply: ComposedReply): TurnEventBody {
  const turn = plan.stateOf(turnActor);
  const isAwaited = turn?.value === 'composing' && callId === effectIdOf(turn.context.turnId, turn.context.callNo);
  if (!isAwaited || turn.context.engine?.isToCheck !== true || reply.type !== 'message') return { type: 'call.replied', callId, reply };
  const { text, model, provider } = reply;
  const draft = { kind: 'reply' as const, callId, text, model, provider, tokens: tokensOf(usage) };
  return { type: 'call.replied', callId, reply, check: { draft, request: checkRequest(documentsIn(plan), turnRowsIn(plan, turn.context.turnId)) } };
}

/** The answer to the awaited check of a reply; null for any other. */
export function checkOf(plan: Plan, command: CommandOf<'call.completed'>): CheckSettled | StepMalformed | null {
  const { callId, usage, model } = command;
  const found = checkIn(plan, callId);
  if (found === null) return null;
  const { rows, openedAtMs } = found;
  const documents = documentsIn(plan);
  const request = checkRequest(documents, rows);
  const { kind, key, reference } = request;
  const tokens = tokensOf(usage);
  const read = recordedAnswer(plan, callId, kind) ?? turnCalls['check-reply'].questionOf(reference, documents).read(command);
  const ms = Math.max(0, plan.atMs - openedAtMs);
  if (read.type === 'malformed') {
    const malformed = malformedRow(kind, read.reason, { key, model, ms, tokens });
    return { type: 'step.malformed', callId, request, row: malformed, tokens, unchecked: uncheckedIn(rows, 'malformed') };
  }
  const row = { kind, key, reference, answer: read.answer, model, ms, tokens } as RowOf<'check-reply'>;
  const isFollowed = row.answer.verdicts.every(({ applies }) => applies);
  return { type: 'check.settled', callId, row, tokens, draft: isFollowed ? draftIn(rows) : null };
}

/** The awaited check that has failed; null for any other call. */
export function failedCheckOf(plan: Plan, callId: string): CheckSettled | null {
  const found = checkIn(plan, callId);
  return found === null ? null : { type: 'check.settled', callId, tokens: 0, ...uncheckedIn(found.rows, 'unavailable') };
}

/** What is sent at the turn's deadline; undefined: no reply is being checked. */
export function dueIn(plan: Plan): Unchecked | undefined {
  const turn = plan.stateOf(turnActor);
  if (turn?.value !== 'checking') return undefined;
  const rows = turnRowsIn(plan, turn.context.turnId);
  // The configuration can't be read, and nothing of the turn was: it has to end nevertheless.
  return rows.length === 0 ? undefined : uncheckedIn(rows, 'deadline');
}

function uncheckedIn(rows: readonly TurnRow[], reason: RowOf<'unchecked'>['reason']): Unchecked {
  return { row: { kind: 'unchecked', reason }, draft: draftIn(rows) };
}

function checkIn(plan: Plan, callId: string): { rows: TurnRow[]; openedAtMs: number } | null {
  const turn = plan.stateOf(turnActor);
  const call = turn?.context.engine?.pending.find((one) => one.callId === callId);
  if (turn?.value !== 'checking' || call === undefined) return null;
  return { rows: turnRowsIn(plan, turn.context.turnId), openedAtMs: call.openedAtMs };
}

function tokensOf(usage: CommandOf<'call.completed'>['usage']): number {
  return usage === null ? 0 : usage.promptTokens + usage.completionTokens;
}
