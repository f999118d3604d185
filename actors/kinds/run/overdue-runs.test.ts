import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { ActorInputs, RunFacts } from '../../inputs/actor-inputs.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import { applyTo } from '../../test-support/apply.ts';

const header = { v: 1, sessionId: 'ses_a', sentAtMs: 0, answerTo: null, traceparent: null } as const;
const start: CommandOf<'run.start'> = { ...header, type: 'run.start', commandId: 'run_a', runId: 'run_a' };
const overdue: CommandOf<'run.deadline'> = { ...header, type: 'run.deadline', commandId: 'run_a-deadline', ...actorFields('run_a') };

/** With an unreadable configuration, so that the run fails at its start. */
const facts: RunFacts = {
  ...{ id: 'run_a', sessionId: 'ses_a', customerId: 'cus_1', ephemeral: false, routineId: 'triage', bundleHash: 'b', metadata: null, traceparent: null },
  ...{ callbackUrl: 'https://example.com/', traceId: 'f'.repeat(32), timeoutMs: 60_000, expiresAtMs: 2_000, createdAtMs: 1_000 },
  ...{ bundle: null, routine: null, inputViolation: null, checkOutput: () => null },
};

function transitionInputs({ isSettled = false }: { isSettled?: boolean } = {}): ActorInputs {
  let ids = 0;
  const newId = () => {
    ids += 1;
    return String(ids);
  };
  return {
    ...{ atMs: 200_000, coalesceMs: 150, turnTimeoutMs: 180_000, greetingOf: () => null, newId, newTraceId: newId, chance: () => 0.5 },
    ...{ runOf: () => facts, isSettled: () => isSettled, isSuperseded: () => false, isClaimed: () => false, toolsOf: () => null, stagedOf: () => new Map() },
  };
}

describe('a run that is missing in its session', () => {
  it('is not changed when its row is settled', () => {
    const plan = new CommitPlan();

    applyTo(plan, null, overdue, transitionInputs({ isSettled: true }));

    expect([plan.runs.size, plan.deliveries.size, plan.timers.size]).toEqual([0, 0, 0]);
  });

  it('is not changed when an earlier command of the same commit has settled it', () => {
    const plan = new CommitPlan();
    const opened = { ...facts, ephemeral: true, expiresAtMs: 300_000 };
    const first = { ...transitionInputs(), runOf: () => opened };

    applyTo(plan, null, start, first);
    const [settled] = [...plan.runs.values()];
    applyTo(plan, plan.sessions.get('ses_a') ?? null, overdue, first);

    expect(settled).toMatchObject({ state: 'failed', error: { code: 'engine_error' } });
    expect([...plan.runs.values()]).toEqual([settled]);
    expect(plan.effects.size).toBe(1);
  });

  it('does not begin behind its cancellation in the same commit, and is settled once', () => {
    const plan = new CommitPlan();
    const inputs = { ...transitionInputs(), runOf: () => ({ ...facts, ephemeral: true, expiresAtMs: 300_000 }) };

    applyTo(plan, null, { ...header, v: 3, type: 'run.cancel', commandId: 'run_a-cancel', runId: 'run_a' }, inputs);
    applyTo(plan, plan.sessions.get('ses_a') ?? null, start, inputs);

    expect([...plan.runs.values()]).toMatchObject([{ state: 'failed', error: { code: 'engine_error', details: { reason: 'cancelled' } } }]);
    expect([plan.deliveries.size, plan.effects.size, plan.sessions.size]).toEqual([1, 1, 0]);
  });

  it.each([
    [199_999, 'timeout'],
    [200_001, 'session_error'],
  ])('fails for want of its session; past its time, for its time (expires at %i, applied at 200000)', (expiresAtMs, code) => {
    const plan = new CommitPlan();

    applyTo(plan, null, start, { ...transitionInputs(), runOf: () => ({ ...facts, expiresAtMs }) });

    expect([...plan.runs.values()]).toMatchObject([{ state: 'failed', error: { code } }]);
  });

  it('is settled as too late when it is not over, and calls back', () => {
    const plan = new CommitPlan();

    applyTo(plan, null, overdue, transitionInputs());

    expect([...plan.runs.values()]).toMatchObject([{ id: 'run_a', state: 'failed', error: { code: 'timeout' }, startedAtMs: 1_000, completedAtMs: 200_000 }]);
    expect([...plan.deliveries.keys()]).toEqual(['run_a-callback']);
    expect(plan.sessions.size).toBe(0);
  });
});
