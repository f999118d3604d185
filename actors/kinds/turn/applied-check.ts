import type { SessionCommand } from '#bus/messages/session.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import { appliedAfter } from '../../engine/policies/applied-policies.ts';
import { judgeApplied } from '../../engine/policies/steps/judge-applied.ts';
import { openEffect, type Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { agentStateIn, turnRowsIn } from './turn-memory.ts';

const SUFFIX = '-applied';
/** Nothing waits for it. */
const TIMEOUT_MS = 60_000;

/** Of the result of such a check: the turn that it is about; null for other commands. */
export function checkedTurnOf(command: SessionCommand): string | null {
  if (command.type !== 'call.completed' && command.type !== 'call.failed') return null;
  return command.callId.endsWith(SUFFIX) ? command.callId.slice(0, -SUFFIX.length) : null;
}

/** Opens the check which policies the turn's reply has applied. The next turn does not wait for it. */
export function openAppliedCheck(plan: Plan, turnId: string): void {
  const turn = plan.stateOf(turnActor);
  const policyIds = turnRowsIn(plan, turnId).findLast((row) => row.kind === 'resolved')?.tracked ?? [];
  if (turn === null || policyIds.length === 0) return;
  const request = { kind: 'applied', deadlineAtMs: plan.atMs + TIMEOUT_MS, policyIds };
  const { bundleHash, traceparent } = turn;
  openEffect(plan, turnActor.name, request, { id: `${turnId}${SUFFIX}`, actorId: turnId, bundleHash, traceparent: contextBelow(traceparent, turnId) });
}

/** Remembers what was applied, for the turns after this one. A failed check, or an answer that can't be read, leaves the policies as not applied. */
export function takeAppliedCheck(plan: Plan, turnId: string): void {
  const { command, partition, sessionId } = plan;
  plan.closeEffect(`${turnId}${SUFFIX}`, 'done');
  // Deleted in this commit, whose rows stay readable until its end.
  if (plan.session?.isDeleted === true) return;
  // Deleted meanwhile, with the end of the log or the whole session: nothing is left to remember.
  const policyIds = turnRowsIn(plan, turnId).findLast((row) => row.kind === 'resolved')?.tracked;
  if (command.type !== 'call.completed' || policyIds === undefined) return;
  const read = judgeApplied.read(
    command,
    policyIds.map((id) => ({ id, condition: '', action: null, options: [] })),
  );
  // Stored where the turn's own state is, or a later turn's: a deletion of events behind it must not forget what this turn has applied.
  const { offset, state: newest } = agentStateIn(plan);
  const appliedPolicyIds = read.type === 'malformed' ? newest.appliedPolicyIds : appliedAfter(newest.appliedPolicyIds, read.answer);
  if (appliedPolicyIds.length === newest.appliedPolicyIds.length) return;
  const state = { ...newest, seq: newest.seq + 1, appliedPolicyIds };
  plan.agentStates.push({ partition, sessionId, seq: state.seq, offset, state });
}
