import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { amendment } from '../../engine/agent-state.ts';
import { appliedAfter } from '../../engine/policies/applied-policies.ts';
import { judgeApplied } from '../../engine/policies/steps/judge-applied.ts';
import { ownTurnRow, type RowOf, type TurnRow } from '../../engine/turn-row.ts';
import { overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import { openEffect, type Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { malformedRow } from './malformed-row.ts';
import { overdueCheckTimer } from './overdue-check.ts';
import { agentStateIn, turnRowsIn } from './turn-memory.ts';

/** Of the ids of the question, and of the second one after an answer that can't be read. */
const CHECK_ID = /^(.+)-applied(-2)?$/;
/** Nothing waits for it. */
const TIMEOUT_MS = 60_000;

/** Of the result of such a check: the turn that it is about; null for other commands. */
export function checkedTurnOf(command: SessionCommand): string | null {
  if (command.type !== 'call.completed' && command.type !== 'call.failed') return null;
  return CHECK_ID.exec(command.callId)?.[1] ?? null;
}

/** Opens the check which policies the turn's reply has applied. The next turn does not wait for it. */
export function openAppliedCheck(plan: Plan, turnId: string): void {
  const turn = plan.stateOf(turnActor);
  const policyIds = turnRowsIn(plan, turnId).findLast((row) => row.kind === 'resolved')?.tracked ?? [];
  if (turn === null || policyIds.length === 0) return;
  const { bundleHash, traceparent } = turn;
  const row = { kind: 'applied-check' as const, bundleHash, traceparent: contextBelow(traceparent, turnId), upToOffset: plan.lastOffset };
  stage(plan, turnId, row.upToOffset, row);
  ask(plan, turnId, `${turnId}-applied`, { row, policyIds });
}

function ask(plan: Plan, turnId: string, id: string, { row, policyIds }: { row: RowOf<'applied-check'>; policyIds: readonly string[] }): void {
  const { bundleHash, traceparent, upToOffset: lastOffset } = row;
  const deadlineAtMs = plan.atMs + TIMEOUT_MS;
  const request = { kind: 'applied', deadlineAtMs, policyIds };
  const { key, atMs, command } = overdueCheckTimer(id, turnId, deadlineAtMs);
  plan.arm(key, atMs, command, { isDerived: true });
  openEffect(plan, turnActor.name, request, { id, actorId: turnId, bundleHash, traceparent, lastOffset });
}

/** Behind the turn's rows. @param offset of the event with whose deletion the row goes */
function stage(plan: Plan, turnId: string, offset: number, body: TurnRow): void {
  const { partition, sessionId } = plan;
  plan.turnSteps.push({ partition, sessionId, turnId, seq: turnRowsIn(plan, turnId).length, offset, body: ownTurnRow(body) });
}

/**
 * Remembers what was applied, for the turns after this one. An answer that can't be read is asked for once more. A second one, and a failed check, leave
 * the policies as not applied.
 */
export function takeAppliedCheck(plan: Plan, turnId: string): void {
  const { command, partition, sessionId } = plan;
  if (!('callId' in command)) return;
  plan.closeEffect(command.callId, 'done');
  plan.disarm(overdueKeyOf(command.callId), { isDerived: true });
  // Deleted in this commit, whose rows stay readable until its end.
  if (plan.session?.isDeleted === true) return;
  // Deleted meanwhile, with the end of the log or the whole session: nothing is left to remember.
  const rows = turnRowsIn(plan, turnId);
  const policyIds = rows.findLast((row) => row.kind === 'resolved')?.tracked;
  if (command.type !== 'call.completed' || policyIds === undefined) return;
  const read = judgeApplied.read(
    command,
    policyIds.map((id) => ({ id, condition: '', action: null, options: [] })),
  );
  if (read.type === 'malformed') {
    askAgain(plan, turnId, { policyIds, reason: read.reason, command });
    return;
  }
  const { offset, state: newest } = agentStateIn(plan);
  // Releases before stored none.
  const ownOffset = rows.findLast((row) => row.kind === 'applied-check')?.upToOffset ?? offset;
  const found = appliedAfter([], read.answer);
  // Behind the turn's own state. With the events of a later turn only the newest state is deleted.
  if (found.length > 0 && ownOffset < offset) plan.agentStates.push({ partition, sessionId, ...amendment(ownOffset, found) });
  const appliedPolicyIds = appliedAfter(newest.appliedPolicyIds, read.answer);
  if (appliedPolicyIds.length === newest.appliedPolicyIds.length) return;
  const state = { ...newest, seq: newest.seq + 1, appliedPolicyIds };
  plan.agentStates.push({ partition, sessionId, seq: state.seq, offset, state });
}

function askAgain(
  plan: Plan,
  turnId: string,
  { policyIds, reason, command }: { policyIds: readonly string[]; reason: string; command: CommandOf<'call.completed'> },
): void {
  // Releases before stored none.
  const row = turnRowsIn(plan, turnId).findLast(({ kind }) => kind === 'applied-check');
  if (row?.kind !== 'applied-check') return;
  const { model, usage, callId } = command;
  const tokens = usage === null ? 0 : usage.promptTokens + usage.completionTokens;
  stage(plan, turnId, row.upToOffset, malformedRow('applied', reason, { key: 'applied', model, ms: null, tokens }));
  if (callId === `${turnId}-applied`) ask(plan, turnId, `${turnId}-applied-2`, { row, policyIds });
}
